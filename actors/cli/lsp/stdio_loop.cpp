#include "actors/cli/lsp/stdio_loop.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "actors/cli/lsp/call_runner.hpp"
#include "actors/cli/lsp/message_frames.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/strict_json.hpp"

namespace redline::actors::cli::lsp {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t read_bytes = 64 << 10;
constexpr std::chrono::seconds farewell_max{2};  // for closing sessions at the end

const call_runner* to_wake = nullptr;
volatile std::sig_atomic_t is_told_to_end = 0;

void on_signal(int) {
  is_told_to_end = 1;
  if (to_wake != nullptr) to_wake->wake();
}

/// Looks for the server, and for the next one after it has ended, while the editor is being served.
class search {
 public:
  /// A server, the reason why there is none, or nullopt while there is none yet.
  using news = std::optional<result<server_address>>;

  search(const own_server& server, const call_runner& to_tell)
      : thread_([this, &server, &to_tell] {
          for (bool is_there = true; is_there && !given_up_;) {
            auto found = server.find(given_up_);
            is_there = found.has_value();
            tell(std::move(found), to_tell);
            if (!is_there) return;
            server.wait_for_end(given_up_);
            tell(std::nullopt, to_tell);
          }
        }) {}
  ~search() {
    given_up_ = true;
    thread_.join();
  }
  search(const search&) = delete;
  search& operator=(const search&) = delete;

  /// Returns the news in order of arrival.
  std::vector<news> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(news_, {});
  }

 private:
  void tell(news what, const call_runner& to_tell) {
    {
      const std::scoped_lock lock(mutex_);
      news_.push_back(std::move(what));
    }
    to_tell.wake();
  }

  std::atomic<bool> given_up_{false};
  std::mutex mutex_;
  std::vector<news> news_;
  std::thread thread_;
};

class editor_loop {
 public:
  editor_loop(language_server::options how, int in, int out)
      : in_(in),
        out_(out),
        server_(
            std::move(how), [this](const json& m) { send(m); }, runner_) {
    to_wake = &runner_;
    std::signal(SIGPIPE, SIG_IGN);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, on_signal);
  }
  ~editor_loop() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
    to_wake = nullptr;
  }

  void use(server_address at) { runner_.set_server(std::move(at)); }
  void look(const own_server& server) { search_.emplace(server, runner_); }

  int run() {
    while (!server_.is_over()) {
      const bool has_input = wait(in_, timeout());
      if (is_told_to_end != 0 || !can_write_) server_.stop();
      take_events();
      server_.wake();
      if (has_input && !server_.is_over()) read_some();
    }
    const auto deadline = std::chrono::steady_clock::now() + farewell_max;
    while (server_.has_farewells() && std::chrono::steady_clock::now() < deadline) {
      wait(-1, milliseconds(50));
      take_events();
    }
    return server_.exit_code();
  }

 private:
  [[nodiscard]] milliseconds timeout() const {
    const auto at = server_.wakes_at();
    if (!at) return milliseconds(-1);
    const auto left = std::chrono::ceil<milliseconds>(*at - std::chrono::steady_clock::now());
    return std::clamp(left, milliseconds(0), milliseconds(60'000));
  }

  /// True if there is something to read on `in`. A negative descriptor is ignored.
  bool wait(int in, milliseconds most) const {
    std::array<pollfd, 2> what{pollfd{in, POLLIN, 0}, pollfd{runner_.descriptor(), POLLIN, 0}};
    const int count = ::poll(what.data(), what.size(), static_cast<int>(most.count()));
    return count > 0 && what[0].revents != 0;
  }

  void take_events() {
    for (auto& e : runner_.take_events()) {
      if (e.reply)
        server_.finished(e.ticket, std::move(*e.reply));
      else
        server_.progressed(e.ticket, e.bytes);
    }
    for (auto& found : search_ ? search_->take() : std::vector<search::news>()) {
      if (!found) {
        runner_.forget_server();
        server_.server_ended();
      } else if (*found) {
        runner_.set_server(std::move(**found));
        server_.server_started();
      } else {
        server_.server_failed(found->error().context);
      }
    }
  }

  void read_some() {
    const ssize_t count = ::read(in_, bytes_.data(), bytes_.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) {
      if (frames_.is_inside()) log_line(log_level::warning, "lsp", "the editor's stream ended inside a message");
      return server_.stop();
    }
    for (const frame& f : frames_.feed({bytes_.data(), static_cast<std::size_t>(count)})) {
      if (server_.is_over()) return;
      if (f.what == frame::kind::message)
        server_.take(f.text);
      else
        server_.refuse_unread(f.text);
      if (f.what == frame::kind::broken) server_.stop();
    }
  }

  /// Blocks if the editor does not read. Meanwhile nothing is read from it, so no input accumulates here.
  void send(const json& message) {
    const std::string whole = frame_of(dump_json(message));
    std::string_view left = whole;
    while (!left.empty() && can_write_) {
      const ssize_t count = ::write(out_, left.data(), left.size());
      if (count > 0) {
        left.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        pollfd room{out_, POLLOUT, 0};
        ::poll(&room, 1, -1);
      } else if (errno != EINTR) {
        can_write_ = false;
      }
      if (is_told_to_end != 0) can_write_ = false;
    }
  }

  int in_, out_;
  bool can_write_ = true;
  std::array<char, read_bytes> bytes_{};
  frame_reader frames_;
  call_runner runner_;
  language_server server_;
  std::optional<search> search_;
};

}  // namespace

int serve_editor(language_server::options how, server_address at, int in, int out) {
  how.is_there = true;
  editor_loop loop(std::move(how), in, out);
  loop.use(std::move(at));
  return loop.run();
}

int serve_editor(language_server::options how, const own_server& server, int in, int out) {
  how.is_there = false;
  editor_loop loop(std::move(how), in, out);
  loop.look(server);
  return loop.run();
}

}  // namespace redline::actors::cli::lsp
