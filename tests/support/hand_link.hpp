#pragma once

#include <algorithm>
#include <deque>
#include <optional>

#include "runtime/actor/link.hpp"
#include "runtime/base/environment.hpp"

// Clock, random numbers and wires for tests that step actors by hand.

namespace redline::test {

/// A clock that the test advances, and random numbers from a seed.
class virtual_environment final : public environment {
 public:
  explicit virtual_environment(std::uint64_t seed = 1) : state_(seed) {}
  [[nodiscard]] instant now() const override { return now_; }
  [[nodiscard]] std::int64_t unix_seconds() const override {
    return 1'700'000'000 + now_.time_since_epoch().count() / 1'000'000;
  }
  std::uint64_t random() override {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A number in [0, n).
  std::uint64_t below(std::uint64_t n) { return random() % n; }
  void advance(microseconds by) { now_ += by; }
  void advance_to(instant when) { now_ = std::max(now_, when); }

 private:
  instant now_{microseconds{1'000'000}};
  std::uint64_t state_;
};

/// Stores sent frames for the test; nothing arrives by itself.
class hand_link final : public actor::link {
 public:
  result<void> send(const actor::frame& f) override {
    if (refusal) return *refusal;
    sent.push_back(f);
    return {};
  }
  std::optional<actor::frame> receive() override { return std::nullopt; }
  void wait(microseconds) override {}

  /// Takes the oldest stored frame if it is an M, and otherwise nothing.
  template<actor::message M>
  std::optional<M> take() {
    if (sent.empty() || sent.front().head.id != M::id) return std::nullopt;
    auto m = actor::decode<M>(sent.front().body);
    if (!m) return std::nullopt;
    last_to = sent.front().head.to;
    sent.pop_front();
    return std::move(*m);
  }

  std::deque<actor::frame> sent;
  std::optional<failure> refusal;
  actor::address last_to;
};

template<actor::message M>
actor::frame frame_of(actor::address to, actor::address from, const M& m) {
  return {actor::envelope{.to = to, .from = from, .id = M::id, .subject = actor::read_subject(m)}, actor::encode(m)};
}

}  // namespace redline::test
