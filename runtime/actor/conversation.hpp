#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "runtime/actor/protocol.hpp"
#include "runtime/base/environment.hpp"

namespace redline::actor {

/// A coroutine that runs when it is awaited, and gives a T. The caller's frame owns it.
template<class T = void>
class [[nodiscard]] task;

namespace detail {

/// At a task's end its caller goes on.
struct back_to_caller {
  static bool await_ready() noexcept { return false; }
  template<class P>
  static std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) noexcept {
    return self.promise().caller;
  }
  static void await_resume() noexcept {}
};

/// What the promises of all tasks have: who goes on afterwards, and what was thrown.
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

/// One of the messages Ms, or none because the deadline passed. The message is the handler's: it is gone when the
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

/// What an actor does over many messages, written as one straight coroutine: it stops where it waits for a message, and
/// goes on inside the handler that has one. So it runs on the handlers' stack, needs no fiber, and steps by hand in
/// tests. The actor owns the conversation and decides in its handlers what it hears; dropping the conversation ends the
/// coroutine where it stands.
///
///     task<> session::live() {
///       ask(...);
///       const auto m = co_await talk_.next<answer, refusal>(context().now() + patience);
///       if (const auto* a = m.as<answer>()) ...
class conversation {
 public:
  /// Runs `story` up to where it first waits.
  void begin(task<> story) {
    story_ = std::move(story);
    go_on(story_.frame_);
  }
  [[nodiscard]] bool is_over() const { return story_.is_over(); }

  /// Goes on with `m`; false when the coroutine is not waiting for messages of this type, which it then never hears.
  /// What the coroutine throws comes out here.
  template<message M>
  bool hear(const M& m) {
    if (wait_ == nullptr || !wait_->wants(M::id)) return false;
    go_on_with(M::id, &m);
    return true;
  }
  /// Goes on without a message when the wait's deadline has come. To be called from time to time.
  void note_time(instant now) {
    if (wait_ != nullptr && wait_->deadline && *wait_->deadline <= now) go_on_with({}, nullptr);
  }

  /// For `co_await`: the next message of these types, or none at the first `note_time` after the deadline.
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
  /// Where the coroutine waits; lives in its frame.
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
