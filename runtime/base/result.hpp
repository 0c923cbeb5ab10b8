#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "runtime/base/assert.hpp"

namespace redline {

/// Every way in which a call can fail for external reasons: X(name, sentence). The number is sent between processes, so
/// entries are appended, never reordered.
#define REDLINE_ERRC(X)                                                               \
  X(invalid_argument, "an argument has an unusable value")                            \
  X(file_unreadable, "a file cannot be opened, read or mapped")                       \
  X(file_malformed, "a file's bytes contradict its format")                           \
  X(unsupported_format, "a valid file or field requires something unsupported")       \
  X(invalid_template, "a chat template cannot be parsed or rendered")                 \
  X(malformed_message, "bytes from a peer are not a valid message")                   \
  X(unknown_message, "a message has an id that its receiver does not accept")         \
  X(mailbox_full, "an actor's mailbox is full")                                       \
  X(unreachable, "an actor cannot be reached")                                        \
  X(pool_exhausted, "the KV page pool has too few free pages")                        \
  X(queue_full, "the admission queue is full")                                        \
  X(context_length_exceeded, "prompt and answer do not fit into the model's context") \
  X(model_not_found, "no loaded model has this name")                                 \
  X(not_ready, "the service is loading or a part of it is down")                      \
  X(draining, "the service is finishing its work and accepts no more")                \
  X(cancelled, "the request was canceled")                                            \
  X(timed_out, "a deadline passed")                                                   \
  X(session_lost, "the actor of a session died")                                      \
  X(unauthorized, "a key is missing or wrong")                                        \
  X(io_error, "the operating system refused an operation")                            \
  X(internal, "a part of Redline failed unexpectedly")                                \
  X(unusable_answer, "the model's answer cannot be used")                             \
  X(version_conflict, "an edit is based on a version other than the current one")

enum class errc : std::uint8_t {
#define REDLINE_ERRC_NAME(name, sentence) name,
  REDLINE_ERRC(REDLINE_ERRC_NAME)
#undef REDLINE_ERRC_NAME
};

/// The identifier, such as "pool_exhausted"; "unknown" for a number outside the list.
std::string_view name_of(errc code);
/// One sentence for users.
std::string_view sentence_of(errc code);
/// False for a number that is not an errc, which a peer may send.
bool is_known(errc code);

/// A failure in words: what was expected, what was found, and in which object.
struct failure {
  errc code = errc::internal;
  std::string context;

  /// "context (sentence)" for logs and command lines.
  [[nodiscard]] std::string describe() const;
  bool operator==(const failure&) const = default;
};

/// A value or a failure. It uses the member names of C++23's std::expected, which replaces it once the compiler has it.
template<class T>
class [[nodiscard]] result {
 public:
  using value_type = T;

  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}    // NOLINT(google-explicit-constructor)
  result(failure why) : state_(std::in_place_index<1>, std::move(why)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  [[nodiscard]] T& value() & { return checked(); }
  [[nodiscard]] T&& value() && { return std::move(checked()); }
  [[nodiscard]] const T& value() const& { return const_cast<result*>(this)->checked(); }
  T& operator*() & { return checked(); }
  T&& operator*() && { return std::move(checked()); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const failure& error() const& {
    REDLINE_ASSERT(!has_value(), "error() of a result that holds a value");
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] failure error() && { return const_cast<const result*>(this)->error(); }

 private:
  T& checked() {
    REDLINE_ASSERT(has_value(), "value() of a result that holds a failure");
    return *std::get_if<0>(&state_);
  }
  std::variant<T, failure> state_;
};

template<>
class [[nodiscard]] result<void> {
 public:
  using value_type = void;

  result() = default;
  result(failure why) : why_(std::move(why)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const { return !why_; }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] const failure& error() const {
    REDLINE_ASSERT(why_.has_value(), "error() of a result that holds a value");
    return *why_;
  }

 private:
  std::optional<failure> why_;
};

/// Returns the failure from the enclosing function if `expression` has one.
#define REDLINE_TRY(expression)                                                 \
  do {                                                                          \
    if (auto redline_r_ = (expression); !redline_r_) return redline_r_.error(); \
  } while (false)

#define REDLINE_CONCAT_(a, b) a##b
#define REDLINE_CONCAT(a, b) REDLINE_CONCAT_(a, b)
/// `REDLINE_TRY_ASSIGN(auto x, f());` declares x from the value, or returns the failure.
#define REDLINE_TRY_ASSIGN(declaration, expression)                                               \
  auto REDLINE_CONCAT(redline_r_, __LINE__) = (expression);                                       \
  if (!REDLINE_CONCAT(redline_r_, __LINE__)) return REDLINE_CONCAT(redline_r_, __LINE__).error(); \
  declaration = std::move(*REDLINE_CONCAT(redline_r_, __LINE__))

}  // namespace redline
