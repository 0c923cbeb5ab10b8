#include "transport/http_front.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <exception>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "transport/byte_shares.hpp"
#include "transport/http_wire.hpp"

namespace redline::transport {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using clock = std::chrono::steady_clock;

constexpr std::size_t write_piece_bytes = 64 << 10;
constexpr std::size_t kept_buffer_bytes_max = 1 << 20;  // for a connection that has sent everything
constexpr std::chrono::milliseconds accept_retry{100};  // after running out of file descriptors
// Closing a socket with unread input sends a reset that may overtake the answer. So input is read and discarded until
// the client closes, within these bounds: a client whose body is somewhat above the limit learns why.
constexpr std::chrono::milliseconds linger_time{2'000};
constexpr std::size_t linger_bytes_max = 16 << 20;
// A request that has been arriving for less time is not closed in favor of another one.
constexpr std::chrono::milliseconds arriving_min{1'000};
// Beyond a limit, this many clients get a refusal; further connections are closed without one.
constexpr std::size_t told_max = 64;

refusal refusal_for(const error_code& ec) {
  if (ec == http::error::header_limit) return refusals::headers_too_large;
  if (ec == http::error::body_limit) return refusals::body_too_large;
  if (ec == http::error::bad_version) return refusals::version_unknown;
  return refusals::malformed;
}

asio::ip::address read_address(const tcp::endpoint& peer) {
  const auto address = peer.address();
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

/// The origin for which connections are bounded: an IPv4 address, or the network of an IPv6 one. Empty if unbounded.
std::string to_origin(const asio::ip::address& address, bool bounds_loopback) {
  if (address.is_loopback() && !bounds_loopback) return {};
  if (address.is_v4()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return asio::ip::address_v6(bytes).to_string();
}

/// The bytes of a common limit that a connection uses, and since when.
struct held_bytes {
  std::uint64_t count;
  clock::time_point since;
};

enum class stage {
  receiving,  // waits for, or reads, a request
  working,    // a handler has the request and has not begun to answer
  streaming,  // between begin_stream and end_stream
  flushing,   // the answer is complete but not fully sent
  lingering,  // everything is sent; waits for the client to close
  closed,
};

}  // namespace

struct http_front::impl : std::enable_shared_from_this<impl> {
  impl(asio::io_context& context, options what, handlers whom)
      : io(context),
        acceptor(context),
        ticker(context),
        limits(std::move(what)),
        call(std::move(whom)),
        received(limits.received_bytes_max, limits.small_bytes),
        unsent(limits.unsent_bytes_max, std::max(limits.small_bytes, limits.buffered_bytes_high)) {}

  result<void> open();
  void accept();
  void welcome(tcp::socket socket);
  void tick();
  /// Closes a connection that waits for its client, from `origin` unless that is empty. Returns false if there is none.
  bool make_room(const std::string& origin);
  /// Ends connections with more than a fair share, the oldest first, while the total exceeds the limit.
  void shed(const byte_shares& shares, held_bytes (connection::*held)() const);
  void close_all();
  /// The connection that works on `id`, or null.
  std::shared_ptr<connection> find(exchange_id id) const;

  asio::io_context& io;
  tcp::acceptor acceptor;
  asio::steady_timer
      ticker;  // one timer for all deadlines: they are coarse, and arming thousands of timers is not free
  bool ticking = false;
  bool draining = false;
  options limits;
  handlers call;
  std::uint16_t port = 0;
  std::uint64_t last_exchange = 0;
  byte_shares received, unsent;
  std::unordered_set<std::shared_ptr<connection>> connections;
  std::unordered_map<std::string, std::size_t> by_origin;  // connections of each origin
  std::unordered_map<std::uint64_t, std::size_t>
      by_owner;           // requests of each owner, from the head to the end of the answer
  std::size_t owned = 0;  // requests of all owners
  std::unordered_map<exchange_id, connection*> exchanges;
};

/// One socket. A read is always outstanding, because it detects that the client is gone. Input that arrives during an
/// exchange waits in inbox_.
class http_front::connection : public std::enable_shared_from_this<connection> {
 public:
  connection(std::shared_ptr<impl> front, tcp::socket socket, const asio::ip::address& peer);

  void start(bool refuse_at_once);
  void respond(unsigned status, const std::vector<http_header>& headers, std::string body);
  void begin_stream(unsigned status, const std::vector<http_header>& headers);
  void write(std::string_view data);
  void end_stream();
  void note_progress() { heard_handler_ = front_->limits.now(); }
  void hold_open(std::vector<http_header> headers);
  void fail(unsigned status, std::vector<http_header> headers, const std::string& error);
  /// Fails the exchange, and reports to the handler that it is over.
  void give_up(unsigned status, const std::string& error);
  void tick(clock::time_point now);
  void close();
  /// Called if the connection uses more than its share while others need it.
  void give_way();

  [[nodiscard]] bool is_busy() const { return stage_ != stage::receiving && stage_ != stage::closed; }
  /// The lower the rank, the sooner it may be closed in favor of another connection; nullopt if it may not be.
  [[nodiscard]] std::optional<int> rank_to_close(clock::time_point now) const;
  [[nodiscard]] clock::time_point waiting_since() const { return waiting_since_; }
  [[nodiscard]] held_bytes received() const { return {counted_received_, waiting_since_}; }
  [[nodiscard]] held_bytes unsent() const { return {counted_unsent_, writing_since_}; }
  [[nodiscard]] const std::string& origin() const { return origin_; }

 private:
  using parser = http::request_parser<http::string_body>;

  void read();
  void on_read(const error_code& ec, std::size_t count);
  void keep_received(std::size_t count);
  void parse();
  bool feed_parser();
  void begin_request();
  std::optional<refusal> check_head() const;
  std::optional<refusal> take_share();
  void give_back_share();
  void answer_expectation();
  void dispatch();
  std::optional<refusal> take_request(http_request& request);
  void hand_over(http_request request);
  void refuse(const refusal& why);

  std::string head_of(unsigned status, const std::vector<http_header>& headers) const;
  void write_chunk(std::string_view data);
  void send_chunk(std::string_view data);
  void ping(clock::time_point now);
  void send(std::string bytes);
  void send_next_piece();
  void on_written(const error_code& ec, std::size_t count);
  void on_all_written();
  void post_flow(bool paused);
  void gone();
  void end_exchange();
  void linger();
  void count_received();
  void count_unsent();

  [[nodiscard]] std::size_t unsent_bytes() const { return queued_.size() + writing_.size() - written_; }
  [[nodiscard]] bool is_partial() const { return parser_.has_value() || inbox_offset_ < inbox_.size(); }

  std::shared_ptr<impl> front_;
  tcp::socket socket_;
  stage stage_ = stage::receiving;

  char chunk_[16 << 10];
  std::string inbox_;  // received, not parsed; starts at inbox_offset_
  std::size_t inbox_offset_ = 0;
  std::size_t counted_received_ = 0;  // this connection's part of impl::received
  std::size_t counted_unsent_ = 0;    // this connection's part of impl::unsent
  std::size_t header_bytes_ = 0;      // parsed header bytes of the current request
  std::size_t lingered_bytes_ = 0;
  std::optional<parser> parser_;
  std::string peer_, origin_;
  std::uint64_t owner_ = 0;  // the owner whose share the request counts against; 0 if none

  exchange_id exchange_;  // valid while stage_ is working, streaming, or flushing a handler's answer
  bool has_exchange_ = false;
  bool keep_ = true;        // another request may follow
  bool is_head_ = false;    // the request's method is HEAD
  bool is_http10_ = false;  // no chunked encoding
  bool is_event_stream_ = false;
  bool is_held_ = false;  // a blank line was sent to begin a response that is not ready
  std::vector<http_header> held_headers_;
  bool continued_ = false;
  bool input_ended_ = false;

  std::string queued_, writing_;
  std::size_t written_ = 0;  // sent bytes of writing_
  bool is_writing_ = false;
  bool paused_ = false;

  // Deadlines. stage_ decides which one applies, except for write_by_, which applies while is_writing_.
  clock::time_point receive_by_, write_by_, linger_by_;
  clock::time_point last_sent_;
  clock::time_point waiting_since_;  // since when it waits for a request's first byte, or the time of that byte
  clock::time_point writing_since_;  // since when there have been unsent bytes
  clock::time_point heard_handler_;  // the last sign of progress on the answer
  clock::time_point began_;          // when the exchange began
};

// The server.

result<void> http_front::impl::open() {
  const auto fail = [this](const char* step, const error_code& ec) {
    return failure{errc::io_error, std::string("HTTP front on ") + limits.address + " port " +
                                       std::to_string(limits.port) + ": cannot " + step + ": " + ec.message()};
  };
  std::string host = limits.address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);

  error_code ec;
  tcp::endpoint endpoint(asio::ip::make_address(host, ec), limits.port);
  if (ec) {
    tcp::resolver resolver(io);
    const auto found = resolver.resolve(host, std::to_string(limits.port), tcp::resolver::passive, ec);
    if (ec || found.empty()) return fail("resolve the address", ec);
    endpoint = found.begin()->endpoint();
  }
  acceptor.open(endpoint.protocol(), ec);
  if (ec) return fail("open a socket", ec);
  acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  acceptor.bind(endpoint, ec);
  if (ec) return fail("bind", ec);
  acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (ec) return fail("listen", ec);
  acceptor.non_blocking(true, ec);
  const auto local = acceptor.local_endpoint(ec);
  if (ec) return fail("read the bound port", ec);
  port = local.port();
  return {};
}

void http_front::impl::accept() {
  acceptor.async_accept([self = shared_from_this()](error_code ec, tcp::socket socket) {
    if (!self->acceptor.is_open()) return;
    if (!ec) {
      self->welcome(std::move(socket));
      return self->accept();
    }
    // The process is most likely out of descriptors; trying again at once would spin.
    if (ec == asio::error::no_descriptors) self->make_room({});
    auto pause = std::make_shared<asio::steady_timer>(self->io, accept_retry);
    pause->async_wait([self, pause](error_code) {
      if (self->acceptor.is_open()) self->accept();
    });
  });
}

void http_front::impl::welcome(tcp::socket socket) {
  error_code ec;
  const auto peer = socket.remote_endpoint(ec);
  if (ec) return;
  auto guest = std::make_shared<http_front::connection>(shared_from_this(), std::move(socket), read_address(peer));
  const auto& origin = guest->origin();
  bool refused = false;
  if (const auto most = limits.connections_per_address_max; most > 0 && !origin.empty()) {
    const auto there = by_origin.find(origin);
    const auto count = there == by_origin.end() ? 0 : there->second;
    refused = count >= most && !make_room(origin);
    if (refused && count >= most + told_max) return;
  }
  refused = refused || (connections.size() >= limits.connections_max && !make_room({}));
  if (refused && connections.size() >= limits.connections_max + told_max) return;
  connections.insert(guest);
  ++by_origin[origin];
  guest->start(refused);
  if (!ticking) tick();
}

void http_front::impl::tick() {
  using std::chrono::milliseconds;
  auto shortest = std::min({limits.first_byte_timeout, limits.idle_timeout, limits.read_timeout, limits.write_timeout,
                            limits.answer_timeout, limits.hold_after});
  if (limits.ping_interval.count() > 0) shortest = std::min(shortest, limits.ping_interval);
  const auto interval = std::clamp(shortest / 4, milliseconds(5), milliseconds(250));

  const auto now = limits.now();
  const std::vector<std::shared_ptr<connection>> all(connections.begin(), connections.end());
  for (const auto& one : all) one->tick(now);
  ticking = !connections.empty();
  if (!ticking) return;
  ticker.expires_after(interval);
  ticker.async_wait([self = shared_from_this()](error_code ec) {
    if (!ec) self->tick();
  });
}

bool http_front::impl::make_room(const std::string& origin) {
  const auto now = limits.now();
  std::shared_ptr<connection> chosen;
  std::pair<int, clock::time_point> best;
  for (const auto& one : connections) {
    const auto rank = one->rank_to_close(now);
    if (!rank || (!origin.empty() && one->origin() != origin)) continue;
    const std::pair here(*rank, one->waiting_since());
    if (chosen && best <= here) continue;
    chosen = one;
    best = here;
  }
  if (chosen) chosen->close();
  return chosen != nullptr;
}

void http_front::impl::shed(const byte_shares& shares, held_bytes (connection::*held)() const) {
  while (shares.is_over()) {
    std::shared_ptr<connection> first;
    for (const auto& one : connections) {
      const auto here = ((*one).*held)();
      if (here.count <= shares.fair_share()) continue;
      if (!first || here.since < ((*first).*held)().since) first = one;
    }
    if (!first) return;
    first->give_way();
  }
}

void http_front::impl::close_all() {
  error_code ignored;
  acceptor.close(ignored);
  const std::vector<std::shared_ptr<connection>> all(connections.begin(), connections.end());
  for (const auto& one : all) one->close();
  ticker.cancel();
}

std::shared_ptr<http_front::connection> http_front::impl::find(exchange_id id) const {
  const auto at = exchanges.find(id);
  return at == exchanges.end() ? nullptr : at->second->shared_from_this();
}

result<std::unique_ptr<http_front>> http_front::listen(asio::io_context& io, options what, handlers whom) {
  if (what.buffered_bytes_low > what.buffered_bytes_high || what.buffered_bytes_high > what.buffered_bytes_max) {
    return failure{errc::invalid_argument, "HTTP front: expected buffered_bytes_low <= _high <= _max, found " +
                                               std::to_string(what.buffered_bytes_low) + ", " +
                                               std::to_string(what.buffered_bytes_high) + ", " +
                                               std::to_string(what.buffered_bytes_max)};
  }
  auto state = std::make_shared<impl>(io, std::move(what), std::move(whom));
  REDLINE_TRY(state->open());
  state->accept();
  return std::unique_ptr<http_front>(new http_front(std::move(state)));
}

http_front::http_front(std::shared_ptr<impl> state) : impl_(std::move(state)) {}

http_front::~http_front() {
  impl_->close_all();
  impl_->call = {};
}

std::uint16_t http_front::port() const { return impl_->port; }

void http_front::respond(exchange_id id, unsigned status, std::vector<http_header> headers, std::string body) {
  if (const auto at = impl_->find(id)) at->respond(status, headers, std::move(body));
}

void http_front::begin_stream(exchange_id id, unsigned status, std::vector<http_header> headers) {
  if (const auto at = impl_->find(id)) at->begin_stream(status, headers);
}

void http_front::write(exchange_id id, std::string data) {
  if (const auto at = impl_->find(id)) at->write(data);
}

void http_front::end_stream(exchange_id id) {
  if (const auto at = impl_->find(id)) at->end_stream();
}

void http_front::note_progress(exchange_id id) {
  if (const auto at = impl_->find(id)) at->note_progress();
}

void http_front::hold_open(exchange_id id, std::vector<http_header> headers) {
  if (const auto at = impl_->find(id)) at->hold_open(std::move(headers));
}

void http_front::fail(exchange_id id, unsigned status, std::vector<http_header> headers, const std::string& error) {
  if (const auto at = impl_->find(id)) at->fail(status, std::move(headers), error);
}

void http_front::fail_all(unsigned status, const std::string& error) {
  std::vector<std::shared_ptr<connection>> open;
  for (const auto& [id, where] : impl_->exchanges) open.push_back(where->shared_from_this());
  for (const auto& one : open) one->give_up(status, error);
}

void http_front::drain() { impl_->draining = true; }
std::size_t http_front::busy_connections() const {
  const auto& all = impl_->connections;
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& c) { return c->is_busy(); }));
}
std::size_t http_front::open_exchanges() const { return impl_->exchanges.size(); }
void http_front::close_all() { impl_->close_all(); }

// The connection while it receives.

http_front::connection::connection(std::shared_ptr<impl> front, tcp::socket socket, const asio::ip::address& peer)
    : front_(std::move(front)),
      socket_(std::move(socket)),
      peer_(peer.to_string()),
      origin_(to_origin(peer, front_->limits.bounds_loopback)) {}

void http_front::connection::start(bool refuse_at_once) {
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  if (const auto bytes = front_->limits.socket_send_bytes) {
    socket_.set_option(asio::socket_base::send_buffer_size(static_cast<int>(bytes)), ignored);
  }
  waiting_since_ = front_->limits.now();
  receive_by_ = waiting_since_ + front_->limits.first_byte_timeout;
  if (refuse_at_once) refuse(refusals::too_many);
  read();
}

void http_front::connection::read() {
  socket_.async_read_some(asio::buffer(chunk_),
                          [self = shared_from_this()](error_code ec, std::size_t count) { self->on_read(ec, count); });
}

void http_front::connection::on_read(const error_code& ec, std::size_t count) {
  if (stage_ == stage::closed) return;
  if (ec) {
    // A complete answer may still reach a client that has only stopped sending.
    if (stage_ == stage::flushing && ec == asio::error::eof) {
      input_ended_ = true;
      keep_ = false;
      return;
    }
    return gone();
  }
  keep_received(count);
  if (stage_ != stage::closed) read();
}

void http_front::connection::keep_received(std::size_t count) {
  if (stage_ == stage::lingering || !keep_) {
    lingered_bytes_ += count;
    if (lingered_bytes_ > linger_bytes_max) gone();
    return;
  }
  inbox_.append(chunk_, count);
  count_received();
  const auto& limits = front_->limits;
  if (stage_ == stage::receiving) {
    parse();
  } else if (inbox_.size() - inbox_offset_ > limits.header_bytes_max + limits.body_bytes_max) {
    return gone();  // a client that sends this far ahead does not wait for answers
  }
  front_->shed(front_->received, &connection::received);
}

/// Updates this connection's part of the total.
void http_front::connection::count_received() {
  const std::size_t held = inbox_.size() - inbox_offset_ + (parser_ ? parser_->get().body().size() : 0);
  front_->received.change(counted_received_, held);
  counted_received_ = held;
}

void http_front::connection::count_unsent() {
  const std::size_t held = stage_ == stage::closed ? 0 : unsent_bytes();
  if (counted_unsent_ == 0 && held > 0) writing_since_ = front_->limits.now();
  front_->unsent.change(counted_unsent_, held);
  counted_unsent_ = held;
}

void http_front::connection::parse() {
  while (stage_ == stage::receiving && feed_parser()) {
  }
  inbox_.erase(0, inbox_offset_);
  inbox_offset_ = 0;
  if (inbox_.capacity() > 4 * sizeof chunk_ && inbox_.size() < sizeof chunk_) inbox_.shrink_to_fit();
  count_received();
}

/// Runs one step of the parser. Returns false if it needs more bytes, or the request was answered or passed on.
bool http_front::connection::feed_parser() {
  if (!parser_) begin_request();
  if (!parser_) return false;
  const std::size_t left = inbox_.size() - inbox_offset_;
  // Beast 1.74 asserts that a last chunk that it has begun to read continues with at least five bytes. Nothing shorter
  // can complete a chunked body, so waiting costs nothing.
  if (left == 0 || (left < 5 && parser_->is_header_done() && parser_->chunked())) return false;

  const bool had_header = parser_->is_header_done();
  // Not before the header: an eager Beast 1.74 continues after one whose body exceeds the limit, and loses the error.
  parser_->eager(had_header);
  error_code ec;
  const std::size_t used = parser_->put(asio::buffer(inbox_.data() + inbox_offset_, left), ec);
  inbox_offset_ += used;
  const bool wants_more = ec == http::error::need_more;
  if (wants_more) ec = {};
  if (!had_header) {
    // Beast applies its own limit to each piece separately.
    header_bytes_ += used;
    const std::size_t waiting = parser_->is_header_done() ? 0 : left - used;
    if (header_bytes_ + waiting > front_->limits.header_bytes_max) ec = http::error::header_limit;
  }
  // A chunk's extensions and trailers are not part of the body, but need a limit, too.
  if (parser_->is_header_done() && wants_more && left - used > front_->limits.header_bytes_max) {
    ec = http::error::header_limit;
  }
  if (ec) {
    refuse(refusal_for(ec));
    return false;
  }
  if (!had_header && parser_->is_header_done()) {
    auto why = check_head();
    if (!why) why = take_share();
    if (why) {
      refuse(*why);
      return false;
    }
  }
  if (parser_->is_done()) {
    dispatch();
    return false;
  }
  if (parser_->is_header_done()) answer_expectation();
  return !wants_more && used > 0;
}

/// The reason to refuse the request whatever its body is, if there is one.
std::optional<refusal> http_front::connection::check_head() const {
  const auto& head = parser_->get();
  const bool is_old = head.version() < 11;
  // Beast looks only at the last coding; an earlier one would leave the body encoded.
  const auto codings = head.count(http::field::transfer_encoding);
  if (codings > 1 ||
      (codings == 1 && (is_old || !boost::beast::iequals(head[http::field::transfer_encoding], "chunked")))) {
    return refusals::encoding_unknown;
  }
  const auto expectation = head.find(http::field::expect);
  if (!is_old && expectation != head.end() && !boost::beast::iequals(expectation->value(), "100-continue")) {
    return refusals::expectation_unknown;
  }
  const auto hosts = head.count(http::field::host);
  if (hosts > 1 || (!is_old && hosts == 0)) return refusals::host_missing;
  return std::nullopt;
}

std::optional<refusal> http_front::connection::take_share() {
  const std::size_t share = front_->limits.requests_per_owner_max;
  if (!front_->call.owner_of || share == 0) return std::nullopt;
  const auto& head = parser_->get();
  const std::uint64_t owner = front_->call.owner_of([&](std::string_view name) -> std::optional<std::string_view> {
    const auto at = head.find(boost::beast::string_view(name.data(), name.size()));
    if (at == head.end()) return std::nullopt;
    return std::string_view(at->value().data(), at->value().size());
  });
  if (owner == 0) return std::nullopt;
  const auto there = front_->by_owner.find(owner);
  const std::size_t own = there == front_->by_owner.end() ? 0 : there->second;
  if (own >= share && front_->owned + share >= front_->limits.connections_max) return refusals::too_many_of_one;
  ++front_->by_owner[owner];
  ++front_->owned;
  owner_ = owner;
  return std::nullopt;
}

void http_front::connection::give_back_share() {
  const auto there = front_->by_owner.find(std::exchange(owner_, 0));
  if (there == front_->by_owner.end()) return;
  if (--there->second == 0) front_->by_owner.erase(there);
  --front_->owned;
}

/// Skips empty lines before a request: they are allowed, and old clients send one after a body.
void http_front::connection::begin_request() {
  while (inbox_offset_ < inbox_.size() && (inbox_[inbox_offset_] == '\r' || inbox_[inbox_offset_] == '\n')) {
    ++inbox_offset_;
  }
  if (inbox_offset_ == inbox_.size()) return;
  parser_.emplace();
  parser_->header_limit(front_->limits.header_bytes_max);
  parser_->body_limit(front_->limits.body_bytes_max);
  header_bytes_ = 0;
  continued_ = false;
  waiting_since_ = front_->limits.now();
  receive_by_ = waiting_since_ + front_->limits.read_timeout;
}

void http_front::connection::answer_expectation() {
  if (continued_ || stage_ != stage::receiving) return;
  continued_ = true;
  const auto& head = parser_->get();
  if (head.version() < 11 || head.find(http::field::expect) == head.end()) return;
  send("HTTP/1.1 100 Continue\r\n\r\n");
}

std::optional<refusal> http_front::connection::take_request(http_request& request) {
  auto& message = parser_->get();
  is_http10_ = message.version() < 11;
  keep_ = message.keep_alive() && !front_->draining;
  is_head_ = message.method() == http::verb::head;
  const auto target = message.target();
  if (!split_target({target.data(), target.size()}, request)) return refusals::target_malformed;
  const auto method = message.method_string();
  request.method.assign(method.data(), method.size());
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string().data(), field.name_string().size()),
                               std::string(field.value().data(), field.value().size())});
  }
  request.body = std::move(message.body());
  request.peer = peer_;
  return std::nullopt;
}

void http_front::connection::dispatch() {
  http_request request;
  const auto why_not = take_request(request);
  parser_.reset();
  if (why_not) return refuse(*why_not);
  hand_over(std::move(request));
}

void http_front::connection::hand_over(http_request request) {
  exchange_ = exchange_id{++front_->last_exchange};
  has_exchange_ = true;
  is_event_stream_ = is_held_ = false;
  held_headers_.clear();
  stage_ = stage::working;
  note_progress();
  began_ = heard_handler_;
  front_->exchanges.emplace(exchange_, this);
  try {
    if (front_->call.on_request) front_->call.on_request(exchange_, std::move(request));
  } catch (const std::exception&) {
    note_refusal(refusals::handler_failed, peer_);
    if (stage_ == stage::working) {
      keep_ = false;
      respond(refusals::handler_failed.status, {{"Content-Type", "application/json"}},
              to_body(refusals::handler_failed));
    } else if (stage_ == stage::streaming) {
      close();
    }
  }
}

void http_front::connection::refuse(const refusal& why) {
  note_refusal(why, peer_);
  parser_.reset();
  inbox_.clear();
  inbox_offset_ = 0;
  count_received();
  keep_ = false;
  is_head_ = false;
  is_http10_ = false;
  stage_ = stage::flushing;
  const std::uint64_t limit = why.status == 413   ? front_->limits.body_bytes_max
                              : why.status == 431 ? front_->limits.header_bytes_max
                                                  : 0;
  const std::string body = to_body(why, limit);
  std::vector<http_header> headers{{"Content-Type", "application/json"}};
  if (why.status == 503 || why.status == 429) headers.push_back({"Retry-After", "1"});
  send(head_of(why.status, headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

// The connection while it answers.

std::string http_front::connection::head_of(unsigned status, const std::vector<http_header>& headers) const {
  const auto reason = http::obsolete_reason(http::int_to_status(status));
  std::string head = "HTTP/1.1 " + std::to_string(status) + " ";
  head.append(reason.data(), reason.size()).append("\r\n");
  for (const auto& header : headers) {
    if (!is_written_by_front(header.name)) append_header(head, header.name, header.value);
  }
  head.append("Date: ").append(date_now()).append("\r\nConnection: ").append(keep_ ? "keep-alive" : "close");
  return head.append("\r\n");
}

void http_front::connection::respond(unsigned status, const std::vector<http_header>& headers, std::string body) {
  if (stage_ == stage::streaming && is_held_) {
    if (status != 200) return close();
    send_chunk(body);
    return end_stream();
  }
  if (stage_ != stage::working) return;
  if (front_->draining) keep_ = false;
  stage_ = stage::flushing;
  const bool may_have_body = status >= 200 && status != 204 && status != 304;
  std::string all = head_of(status, headers);
  if (may_have_body) all += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  all += "\r\n";
  const bool has_body = may_have_body && !is_head_;
  // A long body is not copied.
  const bool is_long = body.size() > write_piece_bytes;
  if (has_body && !is_long) all += body;
  send(std::move(all));
  if (has_body && is_long) send(std::move(body));
}

void http_front::connection::begin_stream(unsigned status, const std::vector<http_header>& headers) {
  if (stage_ != stage::working) return;
  if (front_->draining || is_http10_) keep_ = false;
  stage_ = stage::streaming;
  note_progress();
  const auto* type = find_header(headers, "content-type");
  is_event_stream_ = type && equal_ignoring_case(type->substr(0, 17), "text/event-stream");
  send(head_of(status, headers) + (is_http10_ ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n"));
}

void http_front::connection::write(std::string_view data) {
  note_progress();
  write_chunk(data);
}

void http_front::connection::hold_open(std::vector<http_header> headers) {
  note_progress();
  if (!is_head_) held_headers_ = std::move(headers);
}

void http_front::connection::send_chunk(std::string_view data) {
  if (is_http10_) {
    send(std::string(data));
  } else {
    char size[20];
    const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
    std::string chunk(size, end);
    chunk.append("\r\n").append(data).append("\r\n");
    send(std::move(chunk));
  }
}

void http_front::connection::write_chunk(std::string_view data) {
  if (stage_ != stage::streaming || data.empty() || is_head_) return;
  send_chunk(data);
  if (unsent_bytes() > front_->limits.buffered_bytes_max) {
    // Must not happen within the caller's call.
    asio::post(front_->io, [self = shared_from_this()] { self->gone(); });
  } else if (!paused_ && unsent_bytes() > front_->limits.buffered_bytes_high) {
    paused_ = true;
    post_flow(true);
  }
}

void http_front::connection::end_stream() {
  if (stage_ != stage::streaming) return;
  stage_ = stage::flushing;
  if (!is_http10_ && !is_head_) send("0\r\n\r\n");
  if (!is_writing_) {
    // Nothing is left to send, but the next request must not begin within the caller's call.
    asio::post(front_->io, [self = shared_from_this(), id = exchange_] {
      if (self->stage_ == stage::flushing && !self->is_writing_ && self->exchange_ == id) self->on_all_written();
    });
  }
}

void http_front::connection::fail(unsigned status, std::vector<http_header> headers, const std::string& error) {
  if (stage_ == stage::working) {
    headers.push_back({"Content-Type", "application/json"});
    respond(status, headers, error);
  } else if (stage_ == stage::streaming && is_event_stream_) {
    write("data: " + error + "\n\n");
    end_stream();
  } else if (stage_ == stage::streaming) {
    close();
  }
}

void http_front::connection::give_up(unsigned status, const std::string& error) {
  if (stage_ != stage::working && stage_ != stage::streaming) return;
  const auto self = shared_from_this();
  const auto id = exchange_;
  keep_ = false;
  fail(status, {}, error);
  if (front_->call.on_closed) front_->call.on_closed(id);
}

void http_front::connection::send(std::string bytes) {
  if (queued_.empty())
    queued_ = std::move(bytes);
  else
    queued_.append(bytes);
  count_unsent();
  if (front_->unsent.is_over()) {
    // Must not happen within the caller's call.
    asio::post(front_->io, [front = front_] { front->shed(front->unsent, &connection::unsent); });
  }
  if (is_writing_) return;
  is_writing_ = true;
  std::swap(queued_, writing_);
  written_ = 0;
  send_next_piece();
}

void http_front::connection::send_next_piece() {
  write_by_ = front_->limits.now() + front_->limits.write_timeout;
  const std::size_t count = std::min(writing_.size() - written_, write_piece_bytes);
  asio::async_write(socket_, asio::buffer(writing_.data() + written_, count),
                    [self = shared_from_this()](error_code ec, std::size_t sent) { self->on_written(ec, sent); });
}

void http_front::connection::on_written(const error_code& ec, std::size_t count) {
  if (stage_ == stage::closed) return;
  if (ec) return gone();
  written_ += count;
  count_unsent();
  last_sent_ = front_->limits.now();
  if (paused_ && unsent_bytes() < front_->limits.buffered_bytes_low) {
    paused_ = false;
    post_flow(false);
  }
  if (written_ < writing_.size()) return send_next_piece();
  writing_.clear();
  if (writing_.capacity() > kept_buffer_bytes_max) writing_.shrink_to_fit();
  written_ = 0;
  std::swap(queued_, writing_);
  if (!writing_.empty()) return send_next_piece();
  is_writing_ = false;
  if (stage_ == stage::flushing) on_all_written();
}

void http_front::connection::on_all_written() {
  end_exchange();
  if (front_->draining) keep_ = false;
  if (!keep_) return linger();
  stage_ = stage::receiving;
  waiting_since_ = front_->limits.now();
  receive_by_ = waiting_since_ + front_->limits.idle_timeout;
  parse();  // requests sent ahead
}

/// Posted, to keep the order with other reports and never run within the caller's call.
void http_front::connection::post_flow(bool paused) {
  asio::post(front_->io, [self = shared_from_this(), id = exchange_, paused] {
    if (self->stage_ == stage::streaming && self->exchange_ == id && self->front_->call.on_flow) {
      self->front_->call.on_flow(id, paused);
    }
  });
}

// The connection while it ends.

void http_front::connection::end_exchange() {
  if (has_exchange_) front_->exchanges.erase(exchange_);
  has_exchange_ = false;
  paused_ = false;
  give_back_share();
}

void http_front::connection::linger() {
  if (input_ended_) return close();
  error_code ec;
  socket_.shutdown(tcp::socket::shutdown_send, ec);
  if (ec) return close();
  stage_ = stage::lingering;
  linger_by_ = front_->limits.now() + linger_time;
}

/// The client left or is dropped. Notifies the handler if it still works on the answer.
void http_front::connection::gone() {
  if (stage_ == stage::closed) return;
  const bool must_tell = stage_ == stage::working || stage_ == stage::streaming;
  const auto id = exchange_;
  const auto self = shared_from_this();
  close();
  if (must_tell && front_->call.on_closed) front_->call.on_closed(id);
}

void http_front::connection::close() {
  if (stage_ == stage::closed) return;
  const auto self = shared_from_this();
  end_exchange();
  stage_ = stage::closed;
  parser_.reset();
  inbox_.clear();
  inbox_offset_ = 0;
  count_received();
  count_unsent();
  error_code ignored;
  socket_.close(ignored);
  front_->connections.erase(self);
  const auto there = front_->by_origin.find(origin_);
  if (there != front_->by_origin.end() && --there->second == 0) front_->by_origin.erase(there);
}

void http_front::connection::give_way() {
  if (stage_ == stage::receiving) {
    refuse(refusals::too_much);
  } else {
    gone();
  }
}

std::optional<int> http_front::connection::rank_to_close(clock::time_point now) const {
  if (stage_ == stage::lingering) return 1;
  if (stage_ != stage::receiving || is_writing_) return std::nullopt;
  if (!is_partial()) return 0;
  if (now < waiting_since_ + arriving_min) return std::nullopt;
  return parser_ && parser_->is_header_done() ? 3 : 2;
}

/// Shows that the answer is on its way, if the response can carry such a sign.
void http_front::connection::ping(clock::time_point now) {
  const auto interval = front_->limits.ping_interval;
  if (is_head_ || is_writing_ || interval.count() <= 0) return;
  if (stage_ == stage::working) {
    if (held_headers_.empty() || now < began_ + front_->limits.hold_after) return;
    const auto heard = heard_handler_;
    begin_stream(200, held_headers_);
    heard_handler_ = heard;  // a blank line is no progress on the answer
    is_held_ = true;
    send_chunk("\n");
  } else if (now >= last_sent_ + interval) {
    if (is_event_stream_) send_chunk(": ping\n\n");
    if (is_held_) send_chunk("\n");
  }
}

void http_front::connection::tick(clock::time_point now) {
  if (is_writing_ && now >= write_by_) return gone();
  if (paused_ || is_writing_) heard_handler_ = now;  // the answer waits for the client
  if ((stage_ == stage::working || stage_ == stage::streaming) &&
      now >= heard_handler_ + front_->limits.answer_timeout) {
    note_refusal(refusals::too_late, peer_);
    return give_up(refusals::too_late.status, to_body(refusals::too_late));
  }
  switch (stage_) {
    case stage::receiving:
      if (now < receive_by_) return;
      return is_partial() ? refuse(refusals::too_slow) : close();
    case stage::lingering:
      if (now >= linger_by_) close();
      return;
    case stage::streaming:
    case stage::working:
      return ping(now);
    case stage::flushing:
    case stage::closed:
      return;
  }
}

}  // namespace redline::transport
