#pragma once

#include <bit>
#include <random>
#include <tuple>

#include "runtime/actor/codec.hpp"

namespace redline::test {

/// Fills the fields of any message with values from a seed: every kind of field, with short containers, all valid.
class message_sample {
 public:
  explicit message_sample(std::uint32_t seed) : random_(seed) {}

  template<class T>
  void fill(T& v) {
    namespace of = actor::detail;
    if constexpr (std::is_same_v<T, bool>) {
      v = below(2) == 1;
    } else if constexpr (std::is_same_v<T, errc>) {
      v = errc::queue_full;
    } else if constexpr (std::is_enum_v<T>) {
      v = static_cast<T>(below(static_cast<std::uint32_t>(T::last_)));
    } else if constexpr (of::is_id<T>) {
      fill(v.value);
    } else if constexpr (std::is_integral_v<T>) {
      // The number of bits varies, so that every msgpack width occurs.
      v = static_cast<T>(((std::uint64_t{random_()} << 32) | random_()) >> below(64));
    } else if constexpr (std::is_floating_point_v<T>) {
      v = static_cast<T>(static_cast<std::int32_t>(random_())) / 65536;
    } else if constexpr (std::is_same_v<T, std::string>) {
      v.resize(below(12));
      for (char& c : v) c = static_cast<char>(random_());
    } else if constexpr (std::is_same_v<T, failure>) {
      fill(v.code);
      fill(v.context);
    } else if constexpr (of::is_optional<T>) {
      v.reset();
      if (below(2) == 1) fill(v.emplace());
    } else if constexpr (of::is_pair<T>) {
      fill(v.first);
      fill(v.second);
    } else if constexpr (of::is_vector<T>) {
      v.resize(below(4));
      for (auto& item : v) fill(item);
    } else {
      std::apply([&](auto&... f) { (fill(f), ...); }, T::fields(v));
    }
  }

 private:
  std::uint32_t below(std::uint32_t n) { return random_() % n; }
  std::mt19937 random_;
};

template<class M>
M sample_of(std::uint32_t seed) {
  M m{};
  message_sample(seed).fill(m);
  return m;
}

}  // namespace redline::test
