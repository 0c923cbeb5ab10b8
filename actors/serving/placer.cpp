#include "actors/serving/placer.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/token_chain.hpp"

namespace redline::actors {
namespace {

constexpr microseconds placer_period{250'000};
constexpr microseconds report_age_max{5'000'000};  // for a worker that is connected but silent
constexpr std::uint32_t retry_after_ms = 5'000;
constexpr microseconds kind_kept{30'000'000};  // for numerics that no worker has, while others have the model
constexpr std::uint32_t ticks_per_kept = 4;    // workers are asked for cached prefixes once a second
// A draining worker stays for half a second, for answers placed there before the placer received its new card.
constexpr microseconds taken_while_leaving{250'000};

/// "worker HOST:PID (NUMBER)".
std::string describe(actor::process_number process, const process_card& card) {
  return "worker " + shown_label(card.label) + " (" + std::to_string(process) + ")";
}

}  // namespace

placer::placer(actor::actor_context& context, placer_options options)
    : actor_of(context), options_(std::move(options)) {}

void placer::on_start() {
  if (options_.own) meet(options_.own->first, options_.own->second);
  context().after(placer_period, placer_tick{});
}

// ---- workers -------------------------------------------------------------------------------------------------------

void placer::on(const actor::peer_state& m) {
  if (m.process == 0) {
    has_broker_ = m.reachable;
    why_alone_ = m.why_not;
    return;
  }
  if (!m.reachable) {
    const auto known = members_.find(m.process);
    const bool was_of_use = known != members_.end() && known->second.card.has_target;
    if (!m.why_not.empty()) why_none_ = (was_of_use ? "the last worker is gone: " : "") + m.why_not;
    return lose(m.process, m.why_not);
  }
  auto card = actor::decode<process_card>(m.card);
  if (!card) return;
  meet(m.process, std::move(*card));
}

void placer::meet(actor::process_number process, process_card card) {
  auto& known = members_[process];
  known.heard = context().now();
  known.unfit = options_.why_unfit ? options_.why_unfit(card) : std::nullopt;
  if (known.unfit) {
    why_none_ = *known.unfit;
    context().log(log_level::error, describe(process, card) + " cannot be used: " + *known.unfit);
  }
  const bool leaves = card.is_draining && !known.card.is_draining;
  known.card = std::move(card);
  if (leaves) known.leaves_since = context().now();
  if (known.card.has_target && !known.unfit) {
    ask_status(process);
    context().send(options_.layout.manager_in(process), read_kept{known.kept_revision});
    note_load(process, known);
    models_[known.card.model] = context().now();
    kinds_[{known.card.model, known.card.numerics}] = context().now();
    if (options_.models.value != 0) {
      const auto& at = options_.layout;
      context().send(options_.models,
                     fetch_model{known.card, actor::make_address(process, at.header_worker, at.header)});
    }
  }
  tell_standings();
  if (leaves || known.unfit) return move_guests(process);
  // What was sent while it was out of reach is lost, so its sessions ask again; the KV that it has is still good.
  for (const auto& [id, g] : guests_) {
    if (g.target == process) tell(g);
  }
}

void placer::lose(actor::process_number process, const std::string& why) {
  const auto known = members_.find(process);
  if (known == members_.end()) return;
  context().log(log_level::warning, "lost " + describe(process, known->second.card) + ": " + why);
  members_.erase(known);
  placement_.remove(process);
  tell_standings();
  move_guests(process);
}

/// A draining worker does not support its model's claim to names.
void placer::tell_standings() {
  if (options_.models.value == 0) return;
  std::map<std::uint64_t, model_standing> now;
  for (const auto& [model, last_seen] : models_) now[model].model = model;
  for (const auto& [process, w] : members_) {
    if (!w.card.has_target || w.unfit || w.card.is_draining) continue;
    auto& one = now[w.card.model];
    one.since = one.has_workers ? std::min(one.since, w.card.since) : w.card.since;
    one.has_workers = true;
  }
  // A lost model is reported with lose_model only.
  for (const auto& [model, one] : now) {
    const auto told = standings_.find(model);
    if (told == standings_.end() || told->second != one) context().send(options_.models, one);
  }
  standings_ = std::move(now);
}

void placer::ask_status(actor::process_number process) {
  context().send(options_.layout.manager_in(process), report_status{context().now() < watched_until_});
}

void placer::on(const scheduler_report& m) {
  const auto process = actor::process_of(context().sender());
  const auto at = members_.find(process);
  if (at == members_.end()) return;
  member& w = at->second;
  const bool was_ready = w.report && w.report->ready;
  w.report = m;
  w.heard = context().now();
  if (m.batches_total > w.before.batches_total && m.rows_total > w.before.rows_total) {
    const auto us = static_cast<double>(m.forward_us_total - w.before.forward_us_total);
    w.row_us = us / static_cast<double>(m.rows_total - w.before.rows_total);
    w.pass_us = us / static_cast<double>(m.batches_total - w.before.batches_total);
  }
  if (std::exchange(w.has_reported, true)) count_work(w.before, m);
  w.before = m;
  note_load(process, w);
  if (!was_ready && m.ready) place_later();
}

void placer::on(const kept_prefixes& m) {
  const auto process = actor::process_of(context().sender());
  const auto at = members_.find(process);
  if (at == members_.end() || at->second.unfit) return;
  placement_.learn(process, {.is_all = m.is_all, .added = m.added, .dropped = m.dropped});
  at->second.kept_revision = m.revision;
}

/// Counts a worker's work between two reports, so that none is missed when it is lost, or counted twice when it
/// returns.
void placer::count_work(const scheduler_report& before, const scheduler_report& now) {
  const auto add = [&](std::uint64_t scheduler_report::*total) {
    if (now.*total > before.*total) done_.*total += now.*total - before.*total;
  };
  add(&scheduler_report::batches_total);
  add(&scheduler_report::rows_total);
  add(&scheduler_report::experts_total);
  add(&scheduler_report::mtp_us_total);
  add(&scheduler_report::waits_total);
  add(&scheduler_report::waited_us_total);
  add(&scheduler_report::waits_missed_total);
  add(&scheduler_report::forward_us_total);
  add(&scheduler_report::preempted_total);
  add(&scheduler_report::cached_total);
  add(&scheduler_report::queried_total);
  add(&scheduler_report::refused_total);
  add(&scheduler_report::overflowed_total);
}

void placer::note_load(actor::process_number process, const member& m) {
  if (!m.card.has_target) return;
  const auto r = m.report.value_or(scheduler_report{});
  placement_.note(process, {.takes_work = r.ready && !m.unfit && !m.card.is_draining,
                            .running = r.running_count,
                            .waiting = r.waiting_count,
                            .running_max = m.card.running_max,
                            .waiting_max = m.card.waiting_max,
                            .pending_rows = r.pending_rows,
                            .row_us = r.prompt_row_ns > 0 ? r.prompt_row_ns / 1000.0 : m.row_us,
                            .pass_us = m.pass_us});
}

/// Reports the pool as one cache manager, for the gateway's health and metrics.
void placer::on(const report_status& m) {
  if (m.with_details) watched_until_ = context().now() + 4 * placer_period;
  scheduler_report sum = done_;
  sum.batch_fill = 0;
  double passes = 0;
  for (const auto& [process, w] : members_) {
    if (!w.report || w.unfit) continue;
    const auto& r = *w.report;
    sum.ready = sum.ready || (r.ready && !w.card.is_draining);
    // Any worker must be able to go on with any answer. With several models each has the limit on its card.
    if (options_.models.value == 0 && r.tokens_max > 0) {
      sum.tokens_max = sum.tokens_max == 0 ? r.tokens_max : std::min(sum.tokens_max, r.tokens_max);
    }
    sum.running_count += r.running_count;
    sum.waiting_count += r.waiting_count;
    sum.pages_count += r.pages_count;
    sum.pages_held += r.pages_held;
    sum.states_count += r.states_count;
    sum.states_held += r.states_held;
    sum.state_copies_max += r.state_copies_max;
    sum.state_copies += r.state_copies;
    sum.cost_error_ratio += r.cost_error_ratio * static_cast<double>(r.batches_total);
    sum.batch_fill += r.batch_fill * static_cast<double>(r.batches_total);
    passes += static_cast<double>(r.batches_total);
    if (!r.why_not.empty()) sum.why_not = r.why_not;
    if (!m.with_details) continue;
    for (const worker_status& one : r.workers) {
      sum.workers.push_back(one);
      sum.workers.back().label = shown_label(w.card.label);
    }
  }
  if (passes > 0) sum.cost_error_ratio /= passes;
  sum.batch_fill = passes > 0 ? sum.batch_fill / passes : 1;
  if (sum.ready) {
    sum.why_not.clear();
  } else if (sum.why_not.empty()) {
    sum.why_not = what_is_missing();
  }
  context().send(context().sender(), sum);
}

std::string placer::what_is_missing() const {
  bool has_worker = false;
  for (const auto& [process, w] : members_) {
    if (!w.card.has_target || w.unfit) continue;
    if (!w.card.is_draining) return {};
    has_worker = true;
  }
  if (!why_alone_.empty()) return why_alone_;
  if (has_worker) return "all workers of the pool are shutting down";
  if (!why_none_.empty()) return why_none_;
  return has_broker_ ? "no worker has joined the pool" : "no broker has answered yet";
}

void placer::on(const placer_tick&) {
  context().after(placer_period, placer_tick{});
  const bool asks_kept = ++ticks_ % ticks_per_kept == 0;
  std::vector<actor::process_number> silent;
  for (auto& [process, w] : members_) {
    if (!w.card.has_target || w.unfit) continue;
    // Its bridge is alive, but its cache manager is silent.
    if (w.report && context().now() - w.heard > report_age_max) {
      w.report.reset();
      note_load(process, w);
      silent.push_back(process);
    }
    ask_status(process);
    if (asks_kept) context().send(options_.layout.manager_in(process), read_kept{w.kept_revision});
  }
  for (const auto process : silent) {
    context().log(log_level::warning, describe(process, members_.at(process).card) + " does not respond");
    move_guests(process);
  }
  forget_models();
  for (auto& [id, g] : guests_) g.not_these.clear();
  place_waiting();
}

/// Losses arrive one after another; workers are chosen when all that came together have been handled.
void placer::place_later() {
  if (!std::exchange(places_are_due_, true)) context().tell(self(), places_due{});
}

void placer::on(const places_due&) {
  places_are_due_ = false;
  place_waiting();
}

/// Places answers without a worker, and those of draining workers. Where one finds none, those like it are skipped.
void placer::place_waiting() {
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> none_from;  // by model and numerics: tokens_max
  std::vector<session_id> given_up;
  for (auto& [id, g] : guests_) {
    if (!g.waiting_since && !g.is_leaving) continue;
    const std::pair kind{g.asked.model, g.asked.numerics.value};
    const auto none = none_from.find(kind);
    if (none == none_from.end() || g.asked.tokens_max < none->second) {
      if (place(g)) continue;
      if (g.not_these.empty()) none_from[kind] = g.asked.tokens_max;
    }
    if (!g.is_leaving && context().now() - *g.waiting_since >= options_.patience) given_up.push_back(id);
  }
  for (const session_id id : given_up) give_up(id);
}

void placer::forget_models() {
  for (const auto& [process, w] : members_) {
    if (!w.card.has_target || w.unfit) continue;
    models_[w.card.model] = context().now();
    kinds_[{w.card.model, w.card.numerics}] = context().now();
  }
  std::erase_if(models_, [&](const auto& one) {
    const bool is_gone = context().now() - one.second > options_.model_kept;
    if (is_gone && options_.models.value != 0) context().send(options_.models, lose_model{one.first, {}});
    if (is_gone) standings_.erase(one.first);
    return is_gone;
  });
  std::erase_if(kinds_, [&](const auto& one) {
    const auto& [model, numerics] = one.first;
    const auto known = models_.find(model);
    if (known == models_.end()) return true;
    // The numerics of a model without any worker stay as they were.
    const bool is_gone = known->second == context().now() && context().now() - one.second > kind_kept;
    if (is_gone && options_.models.value != 0) context().send(options_.models, lose_model{model, numerics});
    return is_gone;
  });
}

// ---- sessions ------------------------------------------------------------------------------------------------------

void placer::on(const place_session& m) {
  placed_session& g = guests_[m.session];
  const bool is_new = g.session.value == 0;
  g.session = context().sender();
  g.asked = m;
  if (m.numerics) g.numerics = m.numerics;
  if (m.not_process != 0) g.not_these.insert(m.not_process);
  // A session is not sent back before the next tick to a worker that it could not use, nor does it alternate between
  // two that both fail.
  if (!is_new && g.waiting_since) return;
  if (place(g) || place_at_leaving(g)) return;
  g.waiting_since = context().now();
  g.target = 0;
  g.is_leaving = false;
}

/// The keys under which workers of the model cache the prompt's prefixes; empty if they cache none.
std::vector<std::uint64_t> placer::keys_of(const place_session& asked) const {
  const auto of_model = std::find_if(members_.begin(), members_.end(), [&](const auto& one) {
    return one.second.card.has_target && !one.second.unfit &&
           (asked.model == 0 || one.second.card.model == asked.model);
  });
  if (of_model == members_.end()) return {};
  const auto sharing = of_model->second.card.sharing;
  if (sharing == prefix_sharing::off) return {};
  std::vector<std::uint64_t> keys;
  for (const auto chain : asked.prefixes) {
    keys.push_back(prefix_key(sharing == prefix_sharing::all ? tenant_id{} : asked.scope, chain));
  }
  return keys;
}

/// Chooses among workers that give the answer's bits so far. Before its first token those are preferred, not required.
bool placer::place(placed_session& g) {
  if (place_among(g, g.numerics)) return true;
  return !g.asked.numerics && g.numerics && place_among(g, {});
}

bool placer::place_among(placed_session& g, numerics_id numerics) {
  const auto may_be = [&](scheduler::worker_number n) {
    const auto& w = members_.at(n);
    return !w.unfit && (g.asked.model == 0 || w.card.model == g.asked.model) && w.card.context >= g.asked.tokens_max &&
           (!numerics || numerics_id(w.card.numerics) == numerics) && !g.not_these.contains(n);
  };
  const auto keys = keys_of(g.asked);
  const auto chosen = placement_.choose({.affinity = g.asked.affinity,
                                         .prompt_tokens = g.asked.prompt_tokens,
                                         .prefixes = keys,
                                         .needs_room = g.waiting_since.has_value() || g.is_leaving,
                                         .random = static_cast<std::uint32_t>(context().env().random()),
                                         .may_be = may_be});
  if (!chosen) return false;
  take(g, *chosen);
  return true;
}

/// A request may be read while its model's last worker begins to leave, and a moment later its name may belong to
/// another file. It is still answered there, and moves on when there is another worker.
bool placer::place_at_leaving(placed_session& g) {
  for (const auto& [process, w] : members_) {
    const bool is_just_leaving = w.card.is_draining && context().now() - w.leaves_since < taken_while_leaving;
    const bool can = is_just_leaving && !w.unfit && w.report && w.report->ready &&
                     (g.asked.model == 0 || w.card.model == g.asked.model) && w.card.context >= g.asked.tokens_max &&
                     (!g.asked.numerics || numerics_id(w.card.numerics) == g.asked.numerics) &&
                     !g.not_these.contains(process);
    if (!can) continue;
    take(g, process);
    g.is_leaving = true;
    return true;
  }
  return false;
}

void placer::take(placed_session& g, actor::process_number process) {
  const auto& card = members_.at(process).card;
  g.waiting_since.reset();
  g.is_leaving = false;
  g.target = process;
  g.numerics = numerics_id(card.numerics);
  const bool keeps_drafter = g.drafter != 0 && members_.contains(g.drafter) && !g.not_these.contains(g.drafter);
  if (g.asked.wants_draft && !keeps_drafter) {
    g.drafter = card.has_draft ? process : choose_drafter(card.vocabulary);
  }
  tell(g);
}

void placer::tell(const placed_session& g, bool ask_again) {
  context().send(g.session,
                 session_placed{.session = g.asked.session,
                                .manager = options_.layout.manager_in(g.target),
                                .drafter = g.drafter != 0 ? options_.layout.drafter_in(g.drafter) : actor::address{},
                                .numerics = g.numerics,
                                .ask_again = ask_again});
}

/// Draft workers are shared by all targets of their vocabulary.
actor::process_number placer::choose_drafter(std::uint64_t vocabulary) {
  std::vector<actor::process_number> able;
  for (const auto& [process, w] : members_) {
    if (w.card.has_draft && !w.unfit && !w.card.is_draining && w.card.vocabulary == vocabulary) able.push_back(process);
  }
  return able.empty() ? 0 : able[context().env().random() % able.size()];
}

void placer::give_up(session_id session) {
  const std::string why = members_.empty() ? "no worker has joined the pool"
                                           : "no worker of the pool can continue the answer" +
                                                 (why_none_.empty() ? std::string() : ": " + why_none_);
  context().send(guests_.at(session).session, no_place{session, {errc::unreachable, why}, retry_after_ms});
  guests_.erase(session);
}

/// Answers of a worker that is gone, silent or unfit wait for another one; those of a draining one go on there until
/// there is another.
void placer::move_guests(actor::process_number from) {
  const auto at = members_.find(from);
  const bool goes_on = at != members_.end() && !at->second.unfit && at->second.report && at->second.report->ready;
  for (auto& [id, g] : guests_) {
    if (g.drafter == from && !goes_on) {
      const auto target = members_.find(g.target);
      g.drafter = target != members_.end() && g.target != from ? choose_drafter(target->second.card.vocabulary) : 0;
      if (g.drafter != 0) tell(g, false);
    }
    if (g.target != from) continue;
    g.is_leaving = goes_on;
    if (!goes_on) {
      g.waiting_since = context().now();
      g.target = 0;
    }
  }
  place_later();
}

void placer::on(const leave_place& m) { guests_.erase(m.session); }

void placer::on(const actor::undeliverable& m) {
  // The bridge reports workers that cannot be asked. A session that cannot be reached has died.
  if (m.what != session_placed::id && m.what != no_place::id) return;
  std::erase_if(guests_, [&](const auto& one) { return one.second.session == m.to; });
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::placer>;
