#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/base/size_limits.hpp"

/// Encodes a struct's `fields` in msgpack. A struct is an array of its fields in order, a vector an array, an optional
/// nil or its value; a bool, integer, float or string is itself; an enum and an id are integers. To evolve a message,
/// append a field: a reader keeps the defaults of missing fields and ignores extra ones.
namespace redline::actor {

/// Checked before anything is allocated.
struct codec_limits {
  std::uint32_t message_bytes_max = sizes::message_bytes_max;
  std::uint32_t array_count_max = sizes::array_count_max;
  std::uint32_t string_bytes_max = sizes::string_bytes_max;
  std::uint32_t depth_max = 12;
};

/// A decoded message takes at most this many times its encoded bytes, whatever a peer sends. Otherwise `[[], [], ...]`
/// would become a struct with all its defaults for each byte. An encoded element has a byte for itself and one for each
/// of its fields, so our own messages stay far below (checked where a vector is decoded).
inline constexpr std::size_t decoded_bytes_per_byte = 32;

/// Writes msgpack values one after another. (Only codec.cpp uses msgpack itself.)
class encoder {
 public:
  encoder();
  ~encoder();
  encoder(const encoder&) = delete;
  encoder& operator=(const encoder&) = delete;
  void nil();
  void boolean(bool v);
  void unsigned_integer(std::uint64_t v);
  void signed_integer(std::int64_t v);
  void real(float v);
  void real(double v);
  void bytes(std::string_view v);
  void array(std::size_t count);
  std::string take();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Walks one parsed msgpack value. After the first unexpected value every later call fails, too.
class decoder {
 public:
  /// Parses under `limits`; fails on anything but exactly one well-formed value.
  static result<std::unique_ptr<decoder>> parse(std::string_view bytes, const codec_limits& limits = {});
  ~decoder();

  bool is_nil();  // consumes the value if it is nil
  bool boolean(bool& v);
  bool unsigned_integer(std::uint64_t& v, std::uint64_t max);
  bool signed_integer(std::int64_t& v, std::int64_t min, std::int64_t max);
  bool real(double& v);
  bool bytes(std::string& v);
  /// Enters an array and returns its count; `leave` skips what was not read.
  bool enter(std::size_t& count);
  /// Call it before reserving `bytes` for elements: it fails beyond decoded_bytes_per_byte of the whole message.
  bool claim(std::size_t bytes);
  bool at_end_of_array() const;
  void leave();

  [[nodiscard]] const std::string& complaint() const;
  bool refuse(std::string why);

 private:
  struct state;
  explicit decoder(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

template<class T>
concept has_fields = requires(T& t) {
  T::fields(t);
};

namespace detail {
template<class T>
inline constexpr bool is_vector = false;
template<class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template<class T>
inline constexpr bool is_optional = false;
template<class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template<class T>
inline constexpr bool is_pair = false;
template<class A, class B>
inline constexpr bool is_pair<std::pair<A, B>> = true;
template<class T>
inline constexpr bool is_id = false;
template<class Tag, class I>
inline constexpr bool is_id<strong_id<Tag, I>> = true;

/// The minimum number of bytes that the encoder writes for a T.
template<class T>
consteval std::size_t encoded_bytes_min() {
  if constexpr (has_fields<T>) {
    return 1 + std::tuple_size_v<decltype(T::fields(std::declval<T&>()))>;
  } else {
    return is_pair<T> ? 3 : 1;
  }
}
}  // namespace detail

template<class T>
void encode_value(encoder& out, const T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    out.boolean(v);
  } else if constexpr (std::is_enum_v<T>) {
    out.unsigned_integer(static_cast<std::uint64_t>(v));
  } else if constexpr (detail::is_id<T>) {
    out.unsigned_integer(v.value);
  } else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
    out.unsigned_integer(v);
  } else if constexpr (std::is_integral_v<T>) {
    out.signed_integer(v);
  } else if constexpr (std::is_floating_point_v<T>) {
    out.real(v);
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.bytes(v);
  } else if constexpr (std::is_same_v<T, failure>) {
    out.array(2);
    encode_value(out, v.code);
    encode_value(out, v.context);
  } else if constexpr (detail::is_optional<T>) {
    if (v)
      encode_value(out, *v);
    else
      out.nil();
  } else if constexpr (detail::is_pair<T>) {
    out.array(2);
    encode_value(out, v.first);
    encode_value(out, v.second);
  } else if constexpr (detail::is_vector<T>) {
    out.array(v.size());
    for (const auto& item : v) encode_value(out, item);
  } else {
    static_assert(has_fields<const T>, "a field's type needs fields() or a rule here");
    const auto fields = T::fields(v);
    out.array(std::tuple_size_v<std::remove_cv_t<decltype(fields)>>);
    std::apply([&](const auto&... f) { (encode_value(out, f), ...); }, fields);
  }
}

template<class T>
bool decode_value(decoder& in, T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    return in.boolean(v);
  } else if constexpr (std::is_same_v<T, errc>) {
    std::uint64_t n = 0;
    if (!in.unsigned_integer(n, 255)) return false;
    v = is_known(static_cast<errc>(n)) ? static_cast<errc>(n) : errc::internal;
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(
        requires { T::last_; }, "an enum that crosses the wire ends with last_, so that its range can be checked");
    std::uint64_t n = 0;
    if (!in.unsigned_integer(n, static_cast<std::uint64_t>(T::last_) - 1)) return false;
    v = static_cast<T>(n);
    return true;
  } else if constexpr (detail::is_id<T>) {
    std::uint64_t n = 0;
    if (!in.unsigned_integer(n, std::numeric_limits<typename T::integer_type>::max())) return false;
    v.value = static_cast<typename T::integer_type>(n);
    return true;
  } else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) {
    std::uint64_t n = 0;
    if (!in.unsigned_integer(n, std::numeric_limits<T>::max())) return false;
    v = static_cast<T>(n);
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    std::int64_t n = 0;
    if (!in.signed_integer(n, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())) return false;
    v = static_cast<T>(n);
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    double n = 0;
    if (!in.real(n)) return false;
    v = static_cast<T>(n);
    return true;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return in.bytes(v);
  } else if constexpr (std::is_same_v<T, failure>) {
    std::size_t count = 0;
    if (!in.enter(count)) return false;
    if (count < 2) return in.refuse("a failure needs a code and a context");
    if (!decode_value(in, v.code) || !decode_value(in, v.context)) return false;
    in.leave();
    return true;
  } else if constexpr (detail::is_optional<T>) {
    if (in.is_nil()) {
      v.reset();
      return true;
    }
    return decode_value(in, v.emplace());
  } else if constexpr (detail::is_pair<T>) {
    std::size_t count = 0;
    if (!in.enter(count)) return false;
    if (count != 2) return in.refuse("a pair needs two values");
    if (!decode_value(in, v.first) || !decode_value(in, v.second)) return false;
    in.leave();
    return true;
  } else if constexpr (detail::is_vector<T>) {
    std::size_t count = 0;
    if (!in.enter(count)) return false;
    using element = typename T::value_type;
    static_assert(sizeof(element) <= decoded_bytes_per_byte * detail::encoded_bytes_min<element>());
    if (!in.claim(count * sizeof(element))) return false;
    v.clear();
    v.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!decode_value(in, v.emplace_back())) return false;
    }
    in.leave();
    return true;
  } else {
    static_assert(has_fields<T>, "a field's type needs fields() or a rule here");
    std::size_t count = 0;
    if (!in.enter(count)) return false;
    const bool good =
        std::apply([&](auto&... f) { return ((in.at_end_of_array() || decode_value(in, f)) && ...); }, T::fields(v));
    if (!good) return false;
    in.leave();
    return true;
  }
}

template<class T>
std::string encode(const T& v) {
  encoder out;
  encode_value(out, v);
  return out.take();
}

template<class T>
result<T> decode(std::string_view bytes, const codec_limits& limits = {}) {
  auto in = decoder::parse(bytes, limits);
  if (!in) return in.error();
  T v{};
  if (!decode_value(**in, v)) return failure{errc::malformed_message, (*in)->complaint()};
  return v;
}

}  // namespace redline::actor
