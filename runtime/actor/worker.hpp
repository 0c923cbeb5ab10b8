#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "runtime/actor/activity.hpp"
#include "runtime/actor/actor.hpp"
#include "runtime/actor/handler_times.hpp"
#include "runtime/actor/link.hpp"
#include "runtime/actor/system_messages.hpp"

namespace redline::actor {

/// An actor with its mailbox and context, independent of its type.
class cell {
 public:
  /// kind: the name under which its handlers are timed.
  cell(worker& home, address self, std::string name, std::string_view kind)
      : context_(home, self, std::move(name)), times_(handler_times::of(kind)) {}
  virtual ~cell() = default;

  /// Decodes the frame into the mailbox. Fails if the bytes are malformed, the message is not accepted, or the lane is
  /// full.
  virtual result<void> accept(frame&& f) = 0;
  /// Handles one message; returns false if none waits. Exceptions of the handler pass through.
  virtual bool handle_one() = 0;
  virtual bool idle() = 0;
  /// Whether the actor defines on_idle.
  [[nodiscard]] virtual bool works_when_idle() const = 0;
  virtual void start() = 0;
  virtual void finish() = 0;
  [[nodiscard]] virtual bool has_mail() const = 0;
  /// Whether the lane for a message of this type has space.
  [[nodiscard]] virtual bool has_room_for(message_id what) const = 0;

  [[nodiscard]] actor_context& context() { return context_; }
  [[nodiscard]] bool wants_to_stop() const { return context_.stopping_; }
  [[nodiscard]] address self() const { return context_.self(); }
  /// The name of the last message that was handled.
  [[nodiscard]] std::string_view last_message() const { return last_message_; }
  [[nodiscard]] handler_times& times() { return times_; }

 protected:
  void set_sender(address a, trace::span_context span) {
    context_.sender_ = a;
    context_.span_ = span;
  }
  actor_context context_;
  std::string_view last_message_;

 private:
  handler_times& times_;
};

/// Decodes and dispatches messages. An actor's header declares `extern template class actor_cell<A>` and its source
/// instantiates it, so that files that only spawn A do not compile it again.
template<class A>
class actor_cell final : public cell {
  static_assert(well_formed_actor<A>, "an actor needs one void on(const M&), or on(M&&), for each message it accepts");

 public:
  using factory = std::function<std::unique_ptr<A>(actor_context&)>;
  actor_cell(worker& home, address self, std::string name, std::string_view kind, mailbox_limits limits,
             const factory& make)
      : cell(home, self, std::move(name), kind), mail_(limits), actor_(make(context_)) {}

  result<void> accept(frame&& f) override { return accept_as(std::move(f), std::type_identity<typename A::accepts>{}); }

  bool handle_one() override {
    auto next = mail_.pop();
    if (!next) return false;
    set_sender(next->from, next->span);
    std::visit(
        [this]<class M>(M& m) {
          last_message_ = M::name;
          actor_->on(std::move(m));
        },
        next->content);
    return true;
  }
  bool idle() override { return actor_->on_idle(); }
  [[nodiscard]] bool works_when_idle() const override {
    return !std::is_same_v<decltype(&A::on_idle), bool (actor_of<A>::*)()>;
  }
  void start() override { actor_->on_start(); }
  void finish() override { actor_->on_stop(); }
  [[nodiscard]] bool has_mail() const override { return !mail_.empty(); }
  [[nodiscard]] bool has_room_for(message_id what) const override {
    return mail_.has_room(is_control_message(what, std::type_identity<typename A::accepts>{}));
  }
  [[nodiscard]] A& instance() { return *actor_; }

 private:
  struct letter {
    address from;
    trace::span_context span;
    typename A::accepts::any content;
  };

  template<class... Ms>
  static bool is_control_message(message_id what, std::type_identity<protocol<Ms...>>) {
    return ((what == Ms::id && is_control<Ms>) || ...);
  }

  template<class... Ms>
  result<void> accept_as(frame&& f, std::type_identity<protocol<Ms...>>) {
    result<void> outcome =
        failure{errc::unknown_message, context_.name() + " does not accept message " + std::to_string(f.head.id.value)};
    (try_one<Ms>(f, outcome) || ...);
    return outcome;
  }

  template<class M>
  bool try_one(frame& f, result<void>& outcome) {
    if (f.head.id != M::id) return false;
    auto m = decode<M>(f.body);
    if (!m) {
      outcome =
          failure{errc::malformed_message, context_.name() + ": " + std::string(M::name) + ": " + m.error().context};
    } else if (!mail_.push(letter{f.head.from, f.head.span.value_or(trace::span_context{}), std::move(*m)},
                           is_control<M>)) {
      outcome = failure{errc::mailbox_full,
                        context_.name() + " cannot accept " + std::string(M::name) + ": its mailbox is full"};
    } else {
      outcome = {};
    }
    return true;
  }

  mailbox<letter> mail_;
  std::unique_ptr<A> actor_;
};

/// One thread's actors, timers and link. Everything here happens on that thread.
///
/// `run` calls handlers in turn, one message per actor; tests step it by hand with `deliver`, `run_ready` and
/// `fire_timers`.
class worker {
 public:
  worker(process_number process, std::uint16_t number, link& wire, environment& env);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  /// Adds an actor under a fixed number; `make` builds it now and after each restart.
  template<class A>
  actor_ref<A> add(std::uint32_t number, std::string name, mailbox_limits limits,
                   typename actor_cell<A>::factory make) {
    const address self = make_address(process_, number_, number);
    add_cell(
        self,
        [=, this, name = std::move(name), make = std::move(make)]() -> std::unique_ptr<cell> {
          return std::make_unique<actor_cell<A>>(*this, self, name, name, limits, make);
        },
        true);
    return {self};
  }

  /// Adds an actor under a new number, which is never reused after it stops or dies. The last word of its name
  /// distinguishes it from others of its kind.
  template<class A>
  actor_ref<A> add_temporary(std::string name, mailbox_limits limits, typename actor_cell<A>::factory make) {
    const address self = make_address(process_, number_, draw_number());
    add_cell(
        self,
        [=, this, name = std::move(name), make = std::move(make)]() -> std::unique_ptr<cell> {
          return std::make_unique<actor_cell<A>>(*this, self, name, kind_of(name), limits, make);
        },
        false);
    return {self};
  }

  /// Logs handlers that take longer, at most once a second, because they delay other actors.
  void warn_about_handlers_over(microseconds limit) { handler_limit_ = limit; }
  /// For measurements: every activity of the actors is reported to `listener`.
  void report_activities_to(activity_listener listener) { listener_ = std::move(listener); }
  /// Sets the address to which deaths of actors are reported.
  void report_deaths_to(address supervisor) { supervisor_ = supervisor; }

  /// Runs until a stop_worker message arrives.
  void run();

  /// Puts one frame into its actor's mailbox; returns an undeliverable one to its sender.
  void deliver(frame f);
  /// Handles at most one message of every actor that has one; returns false if there was none.
  bool run_ready();
  /// Delivers the timers that are due; returns when the next one is due.
  std::optional<instant> fire_timers();
  /// Calls on_idle of every actor once; returns true if any asks for another call.
  bool run_idle();
  /// Ends all actors, the most recently started first.
  void finish();
  /// Ends an actor as an exception in its handler would. For tests.
  void kill(address who) { report_death(who, "killed"); }

  [[nodiscard]] environment& env() { return env_; }
  [[nodiscard]] address host_address() const { return make_address(process_, number_, 0); }
  /// The running actor at `where`, for tests; nullptr if it is dead or of another type.
  template<class A>
  A* find(actor_ref<A> where) {
    const auto it = slots_.find(where.where);
    if (it == slots_.end() || !it->second.running) return nullptr;
    auto* typed = dynamic_cast<actor_cell<A>*>(it->second.running.get());
    return typed == nullptr ? nullptr : &typed->instance();
  }

 private:
  friend class actor_context;

  struct slot {
    std::unique_ptr<cell> running;  // empty once dead
    std::function<std::unique_ptr<cell>()> make;
    bool permanent = false;
    bool queued = false;  // is in ready_
    std::uint64_t age = 0;
  };

  static std::string_view kind_of(std::string_view name) { return name.substr(0, name.rfind(' ')); }
  std::uint32_t draw_number();
  void start_timer(microseconds delay, frame f);
  void note_handler(cell& of, instant began);
  void note_activity(cell& of, std::string_view message, instant began, instant ended) const;
  void add_cell(address self, std::function<std::unique_ptr<cell>()> make, bool permanent);
  void start_cell(address self);
  void post(frame f);
  void bounce(const frame& f, failure why);
  void mark_ready(address who);
  bool handle_one_of(address who);
  void report_death(address who, const std::string& reason);
  void handle_host_message(const frame& f);
  bool poll_link();

  process_number process_;
  std::uint16_t number_;
  link& wire_;
  environment& env_;
  address supervisor_;
  std::unordered_map<address, slot> slots_;
  std::deque<address> ready_;
  std::vector<address> idlers_;  // actors that work when idle
  struct timer {
    frame content;
    std::uint64_t age = 0;  // age of the actor that set it: a successor does not get it
  };
  std::multimap<instant, timer> timers_;  // by due time
  std::uint32_t next_number_ = 0;         // number of the next temporary actor; 0 if none was made yet
  std::uint64_t next_age_ = 1;
  instant complain_after_{};  // limits the log of undeliverable messages
  std::optional<microseconds> handler_limit_;
  activity_listener listener_;  // may be empty
  instant complain_of_handlers_after_{};
  bool stopping_ = false;
};

template<class A, class... Args>
actor_ref<A> actor_context::spawn(std::string name, mailbox_limits limits, Args&&... args) {
  auto packed = std::make_shared<std::tuple<std::decay_t<Args>...>>(std::forward<Args>(args)...);
  return home_.add_temporary<A>(std::move(name), limits, [packed](actor_context& context) {
    return std::apply([&](auto&... a) { return std::make_unique<A>(context, std::move(a)...); }, *packed);
  });
}

}  // namespace redline::actor
