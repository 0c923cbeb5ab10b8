#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/actor/frame.hpp"
#include "runtime/actor/mailbox.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"

namespace redline::actor {

class worker;
class cell;

/// A typed address: only messages that A accepts can be sent to it. Empty means that there is no receiver.
template<class A>
struct actor_ref {
  address where;
  explicit operator bool() const { return where.value != 0; }
  bool operator==(const actor_ref&) const = default;
};

/// What an actor can see and do: its identity, the current sender, sending, and the clock. Owned by its cell.
class actor_context {
 public:
  actor_context(worker& home, address self, std::string name) : home_(home), self_(self), name_(std::move(name)) {}

  [[nodiscard]] address self() const { return self_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The sender of the message being handled; 0 for timers.
  [[nodiscard]] address sender() const { return sender_; }
  /// The span of the message being handled; empty if it is not traced.
  [[nodiscard]] trace::span_context span() const { return span_; }
  /// Sends all further messages of this actor under `span`, here and to other processes; empty means under no span.
  void send_under(trace::span_context span) { sends_under_ = span ? std::optional(span) : std::nullopt; }
  [[nodiscard]] environment& env() const;
  [[nodiscard]] instant now() const { return env().now(); }

  /// Sends without waiting. Delivery is at most once, and in order per sender and receiver. A message that cannot be
  /// delivered comes back as `undeliverable` if this actor accepts that.
  template<class A, message M>
  void tell(actor_ref<A> to, const M& m) {
    static_assert(A::accepts::template accepts<M>, "the receiver does not accept this message");
    send(to.where, m);
  }
  /// Sends to an untyped address, such as the sender of a request.
  template<message M>
  void send(address to, const M& m) {
    post(frame{envelope{.to = to, .from = self_, .id = M::id, .subject = read_subject(m), .span = sends_under_},
               encode(m)});
  }

  /// Delivers `m` to this actor itself after `delay`.
  template<message M>
  void after(microseconds delay, const M& m) {
    start_timer(delay, frame{envelope{.to = self_, .id = M::id}, encode(m)});
  }

  /// Makes a child actor on this worker: `spawn<session>("session 7", limits, args...)`.
  template<class A, class... Args>
  actor_ref<A> spawn(std::string name, mailbox_limits limits, Args&&... args);

  /// Ends this actor when the current handler returns; later messages to it are undeliverable.
  void stop() { stopping_ = true; }

  void log(log_level level, std::string_view text, std::initializer_list<log_field> fields = {}) const {
    log_line(level, name_, text, std::span(fields.begin(), fields.size()));
  }

 private:
  friend class cell;
  template<class A>
  friend class actor_cell;
  void post(frame f);
  void start_timer(microseconds delay, frame f);

  worker& home_;
  address self_;
  address sender_;
  trace::span_context span_;
  std::optional<trace::span_context> sends_under_;
  std::string name_;
  bool stopping_ = false;
};

/// The base of every actor. Derived declares `using accepts = protocol<...>` and `void on(const M&)` for each message.
template<class Derived>
class actor_of {
 public:
  explicit actor_of(actor_context& context) : context_(context) {}
  actor_of(const actor_of&) = delete;
  actor_of& operator=(const actor_of&) = delete;

  /// Runs before the first message.
  void on_start() {}
  /// Runs after the last message, even if the worker shuts down.
  void on_stop() {}
  /// Called while no message waits; returning true asks for another call. For actors that work between messages.
  bool on_idle() { return false; }

 protected:
  [[nodiscard]] actor_context& context() { return context_; }
  [[nodiscard]] const actor_context& context() const { return context_; }
  [[nodiscard]] actor_ref<Derived> self() const { return {context_.self()}; }

 private:
  actor_context& context_;
};

}  // namespace redline::actor
