#pragma once

#include <utility>
#include <variant>

#include "runtime/base/assert.hpp"

namespace redline {

/// A value, or the reason there is none in the caller's own terms: `result` with another error type.
template<class T, class E>
class [[nodiscard]] outcome {
 public:
  using value_type = T;
  using error_type = E;

  outcome(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  outcome(E why) : state_(std::in_place_index<1>, std::move(why)) {}      // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& operator*() {
    REDLINE_ASSERT(has_value(), "value of an outcome that holds an error");
    return *std::get_if<0>(&state_);
  }
  const T& operator*() const { return *const_cast<outcome&>(*this); }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  [[nodiscard]] const E& error() const {
    REDLINE_ASSERT(!has_value(), "error of an outcome that holds a value");
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, E> state_;
};

}  // namespace redline
