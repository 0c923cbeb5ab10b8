#include "runtime/actor/codec.hpp"

#include <msgpack.hpp>

namespace redline::actor {
namespace {

// Buffers that grew beyond this are not reused for the next message.
constexpr std::size_t kept_bytes_max = 64U << 10;

/// One spare state per thread: messages are written and read without new allocations.
template<class State>
std::unique_ptr<State>& spare() {
  thread_local std::unique_ptr<State> one;
  return one;
}
template<class State>
std::unique_ptr<State> take_spare() {
  auto one = std::move(spare<State>());
  return one ? std::move(one) : std::make_unique<State>();
}

}  // namespace

struct encoder::state {
  msgpack::sbuffer buffer;
  msgpack::packer<msgpack::sbuffer> packer{buffer};
};

encoder::encoder() : state_(take_spare<state>()) {}
encoder::~encoder() {
  if (state_->buffer.size() > kept_bytes_max) return;
  state_->buffer.clear();
  spare<state>() = std::move(state_);
}

void encoder::nil() { state_->packer.pack_nil(); }
void encoder::boolean(bool v) { v ? state_->packer.pack_true() : state_->packer.pack_false(); }
void encoder::unsigned_integer(std::uint64_t v) { state_->packer.pack_uint64(v); }
void encoder::signed_integer(std::int64_t v) { state_->packer.pack_int64(v); }
void encoder::real(float v) { state_->packer.pack_float(v); }
void encoder::real(double v) { state_->packer.pack_double(v); }

// Text and raw bytes share the bin type: a peer's string need not be UTF-8.
void encoder::bytes(std::string_view v) {
  REDLINE_ASSERT(v.size() <= std::numeric_limits<std::uint32_t>::max(), "a string of a message has less than 4 GiB");
  state_->packer.pack_bin(static_cast<std::uint32_t>(v.size()));
  state_->packer.pack_bin_body(v.data(), static_cast<std::uint32_t>(v.size()));
}

void encoder::array(std::size_t count) {
  REDLINE_ASSERT(count <= std::numeric_limits<std::uint32_t>::max(),
                 "an array of a message has fewer than 2^32 entries");
  state_->packer.pack_array(static_cast<std::uint32_t>(count));
}

std::string encoder::take() { return {state_->buffer.data(), state_->buffer.size()}; }

struct decoder::state {
  struct level {
    const msgpack::object* next;
    const msgpack::object* end;
  };
  msgpack::zone zone;  // memory of root
  msgpack::object root;
  std::vector<level> levels;
  std::size_t bytes = 0;      // size of the message
  std::size_t claimable = 0;  // bytes that may still be allocated
  std::string complaint;

  // Returns the next value of the innermost array, or nullptr with a complaint.
  const msgpack::object* next() {
    if (!complaint.empty()) return nullptr;
    auto& top = levels.back();
    if (top.next == top.end) {
      complaint = "expected a value, found the end of an array";
      return nullptr;
    }
    return top.next++;
  }
};

namespace {

const char* kind_of(const msgpack::object& o) {
  switch (o.type) {
    case msgpack::type::NIL:
      return "nil";
    case msgpack::type::BOOLEAN:
      return "a boolean";
    case msgpack::type::POSITIVE_INTEGER:
    case msgpack::type::NEGATIVE_INTEGER:
      return "an integer";
    case msgpack::type::FLOAT32:
    case msgpack::type::FLOAT64:
      return "a float";
    case msgpack::type::STR:
    case msgpack::type::BIN:
      return "a string";
    case msgpack::type::ARRAY:
      return "an array";
    case msgpack::type::MAP:
      return "a map";
    case msgpack::type::EXT:
      return "an extension";
  }
  return "something unknown";
}

std::string wanted(const char* what, const msgpack::object& found) {
  return std::string("expected ") + what + ", found " + kind_of(found);
}

}  // namespace

decoder::decoder(std::unique_ptr<state> s) : state_(std::move(s)) {}
decoder::~decoder() {
  if (state_->bytes > kept_bytes_max) return;
  state_->zone.clear();
  state_->levels.clear();
  state_->complaint.clear();
  spare<state>() = std::move(state_);
}

result<std::unique_ptr<decoder>> decoder::parse(std::string_view bytes, const codec_limits& limits) {
  if (bytes.size() > limits.message_bytes_max) {
    return failure{errc::malformed_message, "expected at most " + std::to_string(limits.message_bytes_max) +
                                                " bytes in a message, found " + std::to_string(bytes.size())};
  }
  auto s = take_spare<state>();
  s->bytes = bytes.size();
  try {
    std::size_t offset = 0;
    const msgpack::unpack_limit limit(limits.array_count_max, 0, limits.string_bytes_max, limits.string_bytes_max, 0,
                                      limits.depth_max);
    // Strings stay in the caller's buffer while this object exists: no copy, and no allocation sized by the peer.
    s->root = msgpack::unpack(
        s->zone, bytes.data(), bytes.size(), offset,
        [](msgpack::type::object_type, std::size_t, void*) { return true; }, nullptr, limit);
    if (offset != bytes.size()) {
      return failure{errc::malformed_message,
                     "expected one msgpack value, found " + std::to_string(bytes.size() - offset) + " bytes after it"};
    }
  } catch (const std::exception& e) {
    return failure{errc::malformed_message, std::string("not a msgpack value within the limits: ") + e.what()};
  }
  s->claimable = bytes.size() * decoded_bytes_per_byte;
  s->levels.push_back({&s->root, &s->root + 1});
  return std::unique_ptr<decoder>(new decoder(std::move(s)));
}

bool decoder::refuse(std::string why) {
  if (state_->complaint.empty()) state_->complaint = std::move(why);
  return false;
}

const std::string& decoder::complaint() const { return state_->complaint; }

bool decoder::is_nil() {
  auto& top = state_->levels.back();
  if (!state_->complaint.empty() || top.next == top.end || top.next->type != msgpack::type::NIL) return false;
  ++top.next;
  return true;
}

bool decoder::boolean(bool& v) {
  const auto* o = state_->next();
  if (o == nullptr) return false;
  if (o->type != msgpack::type::BOOLEAN) return refuse(wanted("a boolean", *o));
  v = o->via.boolean;
  return true;
}

bool decoder::unsigned_integer(std::uint64_t& v, std::uint64_t max) {
  const auto* o = state_->next();
  if (o == nullptr) return false;
  if (o->type != msgpack::type::POSITIVE_INTEGER) return refuse(wanted("an unsigned integer", *o));
  if (o->via.u64 > max) {
    return refuse("expected an integer up to " + std::to_string(max) + ", found " + std::to_string(o->via.u64));
  }
  v = o->via.u64;
  return true;
}

bool decoder::signed_integer(std::int64_t& v, std::int64_t min, std::int64_t max) {
  const auto* o = state_->next();
  if (o == nullptr) return false;
  if (o->type == msgpack::type::POSITIVE_INTEGER) {
    if (o->via.u64 > static_cast<std::uint64_t>(max)) {
      return refuse("expected an integer up to " + std::to_string(max) + ", found " + std::to_string(o->via.u64));
    }
    v = static_cast<std::int64_t>(o->via.u64);
    return true;
  }
  if (o->type != msgpack::type::NEGATIVE_INTEGER) return refuse(wanted("an integer", *o));
  if (o->via.i64 < min) {
    return refuse("expected an integer from " + std::to_string(min) + ", found " + std::to_string(o->via.i64));
  }
  v = o->via.i64;
  return true;
}

bool decoder::real(double& v) {
  const auto* o = state_->next();
  if (o == nullptr) return false;
  if (o->type == msgpack::type::FLOAT32 || o->type == msgpack::type::FLOAT64) {
    v = o->via.f64;
    return true;
  }
  if (o->type == msgpack::type::POSITIVE_INTEGER) {
    v = static_cast<double>(o->via.u64);
    return true;
  }
  if (o->type == msgpack::type::NEGATIVE_INTEGER) {
    v = static_cast<double>(o->via.i64);
    return true;
  }
  return refuse(wanted("a number", *o));
}

bool decoder::bytes(std::string& v) {
  const auto* o = state_->next();
  if (o == nullptr) return false;
  if (o->type == msgpack::type::BIN) {
    v.assign(o->via.bin.ptr, o->via.bin.size);
    return true;
  }
  if (o->type == msgpack::type::STR) {
    v.assign(o->via.str.ptr, o->via.str.size);
    return true;
  }
  return refuse(wanted("a string", *o));
}

bool decoder::enter(std::size_t& count) {
  const auto* o = state_->next();
  if (o == nullptr) return false;
  if (o->type != msgpack::type::ARRAY) return refuse(wanted("an array", *o));
  count = o->via.array.size;
  state_->levels.push_back({o->via.array.ptr, o->via.array.ptr + o->via.array.size});
  return true;
}

bool decoder::claim(std::size_t bytes) {
  if (bytes > state_->claimable) {
    return refuse("expected a message that is at most " + std::to_string(decoded_bytes_per_byte) +
                  " times its bytes in memory");
  }
  state_->claimable -= bytes;
  return true;
}

bool decoder::at_end_of_array() const {
  const auto& top = state_->levels.back();
  return top.next == top.end;
}

void decoder::leave() { state_->levels.pop_back(); }

}  // namespace redline::actor
