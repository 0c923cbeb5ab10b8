#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "runtime/actor/protocol.hpp"
#include "runtime/base/environment.hpp"

namespace redline::actor {

/// A coroutine that starts when it is awaited and returns a T. The caller's frame owns it.
template<class T = void>
class [[nodiscard]] task;

namespace detail {

/// Resumes the caller at the end of a task.
struct back_to_caller {
  static bool await_ready() noexcept { return false; }
  template<class P>
  static std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) noexcept {
    return self.promise().caller;
  }
  static void await_resume() noexcept {}
};

/// The base of all task promises: what to resume afterwards, and what was thrown.
struct task_promise {
  std::coroutine_handle<> caller = std::noop_coroutine();
  std::exception_ptr thrown;

  static std::suspend_always initial_suspend() noexcept { return {}; }
  static back_to_caller final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { thrown = std::current_exception(); }
};

template<class T>
struct value_promise : task_promise {
  std::optional<T> value;
  task<T> get_return_object();
  void return_value(T v) { value.emplace(std::move(v)); }
  T take() {
    if (thrown) std::rethrow_exception(thrown);
    return std::move(*value);
  }
};

template<>
struct value_promise<void> : task_promise {
  inline task<void> get_return_object();
  static void return_void() {}
  void take() const {
    if (thrown) std::rethrow_exception(thrown);
  }
};

}  // namespace detail

template<class T>
class [[nodiscard]] task {
 public:
  using promise_type = detail::value_promise<T>;
  using handle = std::coroutine_handle<promise_type>;

  task() = default;
  explicit task(handle frame) : frame_(frame) {}
  task(task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  task& operator=(task&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~task() {
    if (frame_) frame_.destroy();
  }

  static bool await_ready() noexcept { return false; }
  handle await_suspend(std::coroutine_handle<> caller) noexcept {
    frame_.promise().caller = caller;
    return frame_;
  }
  T await_resume() { return frame_.promise().take(); }

  [[nodiscard]] bool is_over() const { return !frame_ || frame_.done(); }

 private:
  friend class conversation;
  handle frame_;
};

namespace detail {
template<class T>
task<T> value_promise<T>::get_return_object() {
  return task<T>(task<T>::handle::from_promise(*this));
}
task<void> value_promise<void>::get_return_object() { return task<void>(task<void>::handle::from_promise(*this)); }
}  // namespace detail

/// One of the messages Ms, or none because the deadline passed. The handler owns the message: it is gone when the
/// conversation waits for the next one.
template<message... Ms>
class heard {
 public:
  heard(message_id id, const void* content) : id_(id), content_(content) {}

  /// The message, if it is an M.
  template<class M>
  [[nodiscard]] const M* as() const {
    static_assert((std::same_as<M, Ms> || ...), "this wait was not for such a message");
    return content_ != nullptr && id_ == M::id ? static_cast<const M*>(content_) : nullptr;
  }
  [[nodiscard]] bool is_timeout() const { return content_ == nullptr; }

 private:
  message_id id_;
  const void* content_;
};

/// A sequence of steps of an actor over many messages, written as one coroutine. It suspends where it waits for a
/// message and resumes inside the handler that receives one. So it runs on the handlers' stack, needs no fiber, and can
/// be stepped by hand in tests. The actor owns the conversation, and its handlers decide what to pass to it. Destroying
/// the conversation ends the coroutine where it is suspended.
///
///     task<> session::live() {
///       ask(...);
///       const auto m = co_await talk_.next<answer, refusal>(context().now() + patience);
///       if (const auto* a = m.as<answer>()) ...
class conversation {
 public:
  /// Runs `story` up to its first wait.
  void begin(task<> story) {
    story_ = std::move(story);
    go_on(story_.frame_);
  }
  [[nodiscard]] bool is_over() const { return story_.is_over(); }

  /// Resumes with `m`. Returns false if the coroutine does not wait for messages of this type; it then never receives
  /// `m`. Exceptions of the coroutine pass through.
  template<message M>
  bool hear(const M& m) {
    if (wait_ == nullptr || !wait_->wants(M::id)) return false;
    go_on_with(M::id, &m);
    return true;
  }
  /// Resumes without a message if the wait's deadline has passed. Call it regularly.
  void note_time(instant now) {
    if (wait_ != nullptr && wait_->deadline && *wait_->deadline <= now) go_on_with({}, nullptr);
  }

  /// For `co_await`: returns the next message of these types, or none at the first `note_time` after the deadline.
  template<message... Ms>
  [[nodiscard]] auto next(std::optional<instant> deadline = std::nullopt) {
    struct awaiter : wait {
      awaiter(conversation& talk, std::optional<instant> until) : talk_(talk) {
        deadline = until;
        wants = [](message_id what) { return ((Ms::id == what) || ...); };
      }
      static bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<> who) noexcept {
        waiting = who;
        talk_.wait_ = this;
      }
      heard<Ms...> await_resume() const noexcept { return {id, content}; }
      conversation& talk_;
    };
    return awaiter(*this, deadline);
  }

 private:
  /// A suspended wait; stored in the coroutine's frame.
  struct wait {
    bool (*wants)(message_id) = nullptr;
    std::optional<instant> deadline;
    std::coroutine_handle<> waiting;
    message_id id;
    const void* content = nullptr;
  };

  void go_on_with(message_id id, const void* content) {
    wait* const now = std::exchange(wait_, nullptr);
    now->id = id;
    now->content = content;
    go_on(now->waiting);
  }
  void go_on(std::coroutine_handle<> where) {
    where.resume();
    if (story_.is_over()) story_.await_resume();
  }

  task<> story_;
  wait* wait_ = nullptr;
};

}  // namespace redline::actor
