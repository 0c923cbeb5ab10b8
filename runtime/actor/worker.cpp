#include "runtime/actor/worker.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include "runtime/actor/undelivered.hpp"

namespace redline::actor {
namespace {

// Limits of what is received before the actors run. An 8 MiB body takes milliseconds to decode: one of them is enough.
constexpr int frames_per_turn_max = 256;
constexpr std::size_t bytes_per_turn_max = 1U << 20;
constexpr microseconds wait_max{100'000};
// Checking for more mail costs system calls, so the actors get several turns between checks.
constexpr int turns_per_look = 8;
constexpr microseconds between_complaints{1'000'000};
constexpr std::uint32_t temporary_numbers_begin = 1000;  // smaller numbers are fixed
constexpr microseconds timer_retry{10'000};

}  // namespace

environment& actor_context::env() const { return home_.env(); }
void actor_context::post(frame f) { home_.post(std::move(f)); }
void actor_context::start_timer(microseconds delay, frame f) { home_.start_timer(delay, std::move(f)); }

worker::worker(process_number process, std::uint16_t number, link& wire, environment& env)
    : process_(process), number_(number), wire_(wire), env_(env) {}

worker::~worker() = default;

/// The first number is random, so that late answers to a process that died do not reach an actor of its successor.
std::uint32_t worker::draw_number() {
  if (next_number_ < temporary_numbers_begin) {
    next_number_ = temporary_numbers_begin + static_cast<std::uint32_t>(env_.random() >> 33);
  }
  while (slots_.contains(make_address(process_, number_, next_number_))) ++next_number_;
  return next_number_++;
}

void worker::start_timer(microseconds delay, frame f) {
  const auto at = slots_.find(f.head.to);
  REDLINE_ASSERT(at != slots_.end(), "only actors have timers");
  timers_.emplace(env_.now() + delay, timer{std::move(f), at->second.age});
}

void worker::add_cell(address self, std::function<std::unique_ptr<cell>()> make, bool permanent) {
  auto& s = slots_[self];
  REDLINE_ASSERT(!s.running, "two actors under one address");
  s.make = std::move(make);
  s.permanent = permanent;
  start_cell(self);
}

void worker::start_cell(address self) {
  auto& s = slots_[self];
  s.age = next_age_++;
  s.queued = false;
  try {
    s.running = s.make();
    s.running->start();
  } catch (const std::exception& e) {
    report_death(self, std::string("while starting: ") + e.what());
    return;
  }
  if (s.running->works_when_idle() && std::find(idlers_.begin(), idlers_.end(), self) == idlers_.end()) {
    idlers_.push_back(self);
  }
}

void worker::post(frame f) {
  if (auto sent = wire_.send(f); !sent) bounce(f, sent.error());
}

void worker::bounce(const frame& f, failure why) {
  // An actor need not accept reports of lost messages; such a report is no failure if it is not accepted.
  if (f.head.id == undeliverable::id && why.code == errc::unknown_message) return;
  count_undelivered(why.code);
  // A message to an actor that has ended is normal. Other failures are logged, but at a limited rate.
  auto level = log_level::debug;
  if (why.code != errc::unreachable && env_.now() >= complain_after_) {
    level = log_level::warning;
    complain_after_ = env_.now() + between_complaints;
  }
  log_line(level, "worker " + to_string(host_address()),
           "cannot deliver message " + std::to_string(f.head.id.value) + " to " + to_string(f.head.to) + ": " +
               why.describe());
  if (f.head.from.value == 0 || f.head.id == undeliverable::id) return;
  frame back{envelope{.to = f.head.from, .from = host_address(), .id = undeliverable::id},
             encode(undeliverable{f.head.to, f.head.id, std::move(why), f.head.subject})};
  if (node_of(f.head.from) == node_of(host_address())) {
    deliver(std::move(back));
  } else {
    (void)wire_.send(back);  // if this fails, too, there is nothing left to notify
  }
}

void worker::deliver(frame f) {
  if (f.head.to == host_address()) {
    handle_host_message(f);
    return;
  }
  const auto it = slots_.find(f.head.to);
  if (it == slots_.end() || !it->second.running) {
    bounce(f, failure{errc::unreachable, "no actor at " + to_string(f.head.to)});
    return;
  }
  const address to = f.head.to;
  frame returned{f.head, {}};
  const instant began = env_.now();
  auto taken = it->second.running->accept(std::move(f));
  // Decoding a message occupies the thread just as handling it does.
  const instant ended = env_.now();
  it->second.running->times().note(std::chrono::duration_cast<microseconds>(ended - began), began);
  note_activity(*it->second.running, {}, began, ended);
  if (!taken) {
    bounce(returned, taken.error());
    return;
  }
  mark_ready(to);
}

void worker::mark_ready(address who) {
  auto& s = slots_[who];
  if (s.queued) return;
  s.queued = true;
  ready_.push_back(who);
}

void worker::note_activity(cell& of, std::string_view message, instant began, instant ended) const {
  if (listener_) listener_({of.context().name(), message, began, ended});
}

void worker::note_handler(cell& of, instant began) {
  const instant now = env_.now();
  const auto took = std::chrono::duration_cast<microseconds>(now - began);
  of.times().note(took, now);
  note_activity(of, of.last_message(), began, now);
  if (!handler_limit_ || took <= *handler_limit_ || now < complain_of_handlers_after_) return;
  complain_of_handlers_after_ = now + between_complaints;
  of.context().log(log_level::warning, "occupied its thread for " + std::to_string(took.count() / 1000) +
                                           " ms to handle " + std::string(of.last_message()));
}

bool worker::handle_one_of(address who) {
  const auto it = slots_.find(who);
  if (it == slots_.end() || !it->second.running) return false;
  cell& actor = *it->second.running;
  const instant began = env_.now();
  try {
    if (!actor.handle_one()) return false;
    note_handler(actor, began);
  } catch (const std::exception& e) {
    report_death(who, e.what());
    return true;
  }
  if (actor.wants_to_stop()) {
    actor.finish();
    slots_.erase(who);
  }
  return true;
}

// The dead actor's mail is dropped: its senders notice the supervisor's restart or their own deadlines.
void worker::report_death(address who, const std::string& reason) {
  const auto it = slots_.find(who);
  if (it == slots_.end()) return;
  const std::string name = it->second.running ? it->second.running->context().name() : to_string(who);
  log_line(log_level::error, name, "died: " + reason);
  it->second.running.reset();
  it->second.queued = false;
  if (!it->second.permanent) slots_.erase(it);
  if (supervisor_.value != 0) {
    post(frame{envelope{.to = supervisor_, .from = host_address(), .id = actor_down::id},
               encode(actor_down{who, reason})});
  }
}

void worker::handle_host_message(const frame& f) {
  if (f.head.id == stop_worker::id) {
    stopping_ = true;
  } else if (f.head.id == restart_actor::id) {
    auto m = decode<restart_actor>(f.body);
    if (!m) return;
    const auto it = slots_.find(m->who);
    if (it == slots_.end() || !it->second.permanent) return;
    it->second.running.reset();
    start_cell(m->who);
  }
}

bool worker::run_ready() {
  const std::size_t count = ready_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const address who = ready_.front();
    ready_.pop_front();
    const auto it = slots_.find(who);
    if (it == slots_.end()) continue;
    it->second.queued = false;
    handle_one_of(who);
    const auto again = slots_.find(who);
    if (again != slots_.end() && again->second.running && again->second.running->has_mail()) mark_ready(who);
  }
  return count > 0;
}

std::optional<instant> worker::fire_timers() {
  const instant now = env_.now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    timer t = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    const auto it = slots_.find(t.content.head.to);
    if (it == slots_.end() || !it->second.running || it->second.age != t.age) continue;
    // An actor whose ticks are lost would never tick again.
    if (it->second.running->has_room_for(t.content.head.id))
      deliver(std::move(t.content));
    else
      timers_.emplace(now + timer_retry, std::move(t));
  }
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

bool worker::run_idle() {
  bool more = false;
  for (const address who : idlers_) {
    const auto it = slots_.find(who);
    if (it == slots_.end() || !it->second.running) continue;
    const instant began = env_.now();
    try {
      more = it->second.running->idle() || more;
      note_activity(*it->second.running, {}, began, env_.now());
    } catch (const std::exception& e) {
      report_death(who, e.what());
    }
  }
  return more;
}

bool worker::poll_link() {
  int received = 0;
  std::size_t bytes = 0;
  while (received < frames_per_turn_max && bytes < bytes_per_turn_max) {
    auto f = wire_.receive();
    if (!f) break;
    bytes += f->body.size();
    deliver(std::move(*f));
    ++received;
  }
  return received > 0;
}

void worker::run() {
  while (!stopping_) {
    const bool heard = poll_link();
    const auto next_timer = fire_timers();
    bool worked = false;
    for (int turn = 0; turn < turns_per_look && run_ready(); ++turn) worked = true;
    if (heard || worked) continue;
    if (run_idle()) continue;
    microseconds patience = wait_max;
    if (next_timer) patience = std::clamp(*next_timer - env_.now(), microseconds{0}, wait_max);
    wire_.wait(patience);
  }
  finish();
}

void worker::finish() {
  std::vector<std::pair<std::uint64_t, address>> by_age;
  for (const auto& [who, s] : slots_) by_age.emplace_back(s.age, who);
  std::sort(by_age.rbegin(), by_age.rend());
  for (const auto& [age, who] : by_age) {
    auto& s = slots_[who];
    if (!s.running) continue;
    try {
      s.running->finish();
    } catch (const std::exception& e) {
      log_line(log_level::error, s.running->context().name(), std::string("while stopping: ") + e.what());
    }
    s.running.reset();
  }
}

}  // namespace redline::actor
