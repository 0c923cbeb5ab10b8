#include "actors/editing/edit_session.hpp"

#include <algorithm>
#include <utility>

#include "actors/prompts/edit_prompt.hpp"
#include "actors/serving/cache_manager.hpp"
#include "actors/serving/draft_model.hpp"
#include "actors/serving/placer.hpp"
#include "actors/serving/session.hpp"
#include "runtime/actor/codec.hpp"

namespace redline::actors {
namespace {

constexpr microseconds tick{1'000'000};
// A round without an answer is asked for again, since it or its answer may have been lost.
constexpr microseconds patience{5'000'000};
// The cache manager releases a sequence that is not asked about for two minutes.
constexpr microseconds reminder{60'000'000};
// More rounds than an answer can have. A borrower gets them all, so that no count need come back from a session that
// died.
constexpr std::uint64_t rounds_per_loan = std::uint64_t{1} << 32;

file_state state_of(const workspace::file& f) {
  return {f.path, f.document.version(), f.document.text().size(), f.document.document().lines_count(),
          f.document.tokens().size()};
}

}  // namespace

edit_session::edit_session(actor::actor_context& context, edit_session_options options, workspace files)
    : actor_of(context),
      options_(std::move(options)),
      work_(context, options_.pool),
      files_(std::make_shared<workspace>(std::move(files))),
      kv_(options_.policy),
      sequence_{options_.session.value} {}

void edit_session::on_start() {
  called_ = asked_ = shown_ = context().now();
  prepare();
  context().after(tick, edit_session_tick{});
}

void edit_session::refuse(std::uint64_t exchange, refusal why) {
  if (exchange != 0) context().send(options_.client, call_refused{exchange, std::move(why)});
}

bool edit_session::hold(std::uint64_t exchange, std::size_t bytes) {
  if (auto why = options_.waiting.resize(waiting_bytes_ + bytes, files_->how().limits)) {
    refuse(exchange, std::move(*why));
    return false;
  }
  waiting_bytes_ += bytes;
  return true;
}

void edit_session::give_back(std::size_t bytes) {
  waiting_bytes_ -= bytes;
  static_cast<void>(options_.waiting.resize(waiting_bytes_, files_->how().limits));
}

void edit_session::in_turn(std::uint64_t exchange, const std::function<std::size_t()>& bytes,
                           std::function<void()> call) {
  called_ = context().now();
  if (!busy_ && calls_.empty()) return call();
  if (calls_.size() >= files_->how().limits.calls_max) {
    return refuse(exchange, {.why = {errc::queue_full, "too many calls are waiting for this session"}});
  }
  const std::size_t held = bytes();
  if (hold(exchange, held)) calls_.push_back({exchange, std::move(call), held});
}

template<class M>
void edit_session::in_turn(const M& m, std::function<void()> call) {
  in_turn(
      m.exchange, [&m] { return actor::encode(m).size(); }, std::move(call));
}

void edit_session::call_next() {
  while (!busy_ && !calls_.empty()) {
    const waiting_call next = std::move(calls_.front());
    calls_.pop_front();
    give_back(next.bytes);
    next.run();
  }
}

template<class Job, class Then>
void edit_session::work_on_files(std::uint64_t exchange, std::size_t bytes, Job job, Then then) {
  using value = std::invoke_result_t<Job&, workspace&>;
  const auto ticket = work_.run(
      options_.tenant, bytes,
      [files = files_, context_max = options_.answers->context_max(), job = std::move(job)]() mutable {
        files->limit_context(context_max);
        return job(*files);
      },
      [this, exchange, then = std::move(then)](result<value> done) mutable {
        busy_ = false;
        if (!done)
          refuse(exchange, {.why = done.error()});
        else if (!*done)
          refuse(exchange, done->error());
        else
          then(std::move(**done));
        call_next();
      });
  busy_ = ticket.has_value();
  if (!ticket) refuse(exchange, {.why = ticket.error()});
}

void edit_session::on(const show_session& m) {
  in_turn(m, [this, exchange = m.exchange] {
    session_shown shown{.exchange = exchange, .healed_count = healed_count_, .kv = kv_.state()};
    for (const auto& f : files_->files()) shown.files.push_back(state_of(f));
    context().send(options_.client, shown);
  });
}

void edit_session::on(const show_file& m) {
  in_turn(m, [this, m] {
    const auto found = files_->find(m.path);
    if (!found) return refuse(m.exchange, found.error());
    context().send(options_.client,
                   file_shown{.exchange = m.exchange, .file = state_of(**found), .text = (*found)->document.text()});
  });
}

void edit_session::change_files(std::uint64_t exchange, std::size_t bytes,
                                std::function<outcome<file_shown, refusal>(workspace&)> change) {
  const auto job = [change = std::move(change)](workspace& files) -> outcome<changed_files, refusal> {
    auto shown = change(files);
    if (!shown) return shown.error();
    return changed_files{std::move(*shown), files.expected()};
  };
  work_on_files(exchange, bytes, job, [this, exchange](changed_files done) {
    prepare(std::move(done.next));
    done.shown.exchange = exchange;
    if (done.shown.change) done.shown.change->kv = kv_.state();
    context().send(options_.client, done.shown);
  });
}

void edit_session::on(const put_file& m) {
  in_turn(m, [this, m] {
    change_files(m.exchange, m.text.size(), [m](workspace& files) -> outcome<file_shown, refusal> {
      const bool is_new = !files.find(m.path).has_value();
      if (auto why = files.put(m.path, m.text, m.version)) return std::move(*why);
      return file_shown{.file = state_of(**files.find(m.path)), .is_new = is_new};
    });
  });
}

void edit_session::on(const patch_file& m) {
  in_turn(m, [this, m] {
    change_files(m.exchange, files_->bytes(m.path), [m](workspace& files) -> outcome<file_shown, refusal> {
      const auto done = files.patch(m);
      if (!done) return done.error();
      file_change change;
      for (const auto& splice : *done) {
        change.tokens_removed += splice.remove_count;
        change.tokens_inserted += splice.insert.size();
      }
      return file_shown{.file = state_of(**files.find(m.path)), .change = change};
    });
  });
}

void edit_session::on(const drop_file& m) {
  in_turn(m, [this, m] {
    if (auto why = files_->drop(m.path)) return refuse(m.exchange, std::move(*why));
    context().send(options_.client, call_done{m.exchange});
    prepare();
  });
}

void edit_session::on(const complete_text& m) {
  in_turn(m, [this, m] {
    if (waiting_.size() >= files_->how().limits.calls_max) {
      return refuse(m.exchange, {.why = {errc::queue_full, "too many completions are waiting for this session"}});
    }
    const auto job = [m, answers = options_.answers](workspace& files) -> outcome<completion, refusal> {
      auto laid_out = files.lay_out(m.where);
      if (!laid_out) return laid_out.error();
      auto rules = answers->rules_for(m.spec);
      if (!rules) return rules.error();
      files.note_place(m.where);
      completion next{m.exchange, std::move(laid_out->prompt), std::move(laid_out->behind), m.spec, std::move(*rules)};
      next.spec.stops.insert(next.spec.stops.end(), laid_out->stops.begin(), laid_out->stops.end());
      return next;
    };
    work_on_files(m.exchange, files_->bytes(m.where.path), job, [this](completion next) {
      next.bytes = (next.prompt.size() + next.behind.size()) * sizeof(token) + actor::encode(next.spec).size();
      if (!hold(next.exchange, next.bytes)) return;
      waiting_.push_back(std::move(next));
      lend_to_next();
    });
  });
}

void edit_session::lend_to_next() {
  while (!borrower_ && !waiting_.empty()) {
    completion next = std::move(waiting_.front());
    waiting_.pop_front();
    give_back(next.bytes);
    lend(std::move(next));
  }
}

void edit_session::lend(completion next) {
  next.spec.eviction = {};  // a borrowed sequence has the files' KV: none of it is evicted
  auto answer = options_.answers->prepare(next.spec, next.prompt, std::move(next.rules), std::nullopt, "position",
                                          options_.client);
  if (!answer) return refuse(next.exchange, answer.error());
  // Without splices, the answer's session itself sends the cache manager everything it needs.
  if (auto step = kv_.follow(std::move(next.prompt), next.behind); !step.splices.empty()) {
    prefill(sequence_, {++round_.value}, kv_.log(), std::move(step.splices));
  }
  preparing_ = false;
  if (!options_.manager) ask_for_place(0);
  answer->partners.borrowed = {sequence_, round_, options_.answers->context_max(), context().self(), numerics_};
  // The answer uses the worker that has the sequence, not one that the placer would choose for it.
  answer->partners.placer = {};
  answer->partners.manager = options_.manager;
  if (drafter_ && answer->partners.place.wants_draft) answer->partners.drafter = drafter_;
  round_.value += rounds_per_loan;
  borrower_ = {next.exchange, spawn_answer(next.exchange, next.spec.session, std::move(*answer))};
}

actor::actor_ref<session> edit_session::spawn_answer(std::uint64_t exchange, session_id id,
                                                     answer_factory::answer answer) {
  const auto where = context().spawn<session>("session " + std::to_string(id.value), {1024, 1024},
                                              std::move(answer.work), std::move(answer.partners));
  context().send(options_.client, answer_started{exchange, where.where});
  return where;
}

void edit_session::prepare() {
  in_turn(
      0, [] { return std::size_t{0}; },
      [this] {
        if (borrower_ || !waiting_.empty()) return;
        work_on_files(
            0, files_->bytes(),
            [](workspace& files) -> outcome<std::optional<workspace::layout>, refusal> { return files.expected(); },
            [this](std::optional<workspace::layout> next) { prepare(std::move(next)); });
      });
}

void edit_session::prepare(std::optional<workspace::layout> next) {
  if (borrower_ || !waiting_.empty() || !next) return;
  // The last answer follows the prompt. It may be typed next, so its KV is left alone.
  if (auto step = kv_.expect(std::move(next->prompt), next->behind); step.is_new) {
    prefill(sequence_, {++round_.value}, kv_.log(), std::move(step.splices));
    preparing_ = true;
  }
  heal();
}

/// A later text replaces an older one. Their common beginning is not computed twice.
void edit_session::heal() {
  if (kv_.is_exact()) {
    if (healing_) context().tell(options_.manager, release_sequence{healing_->sequence});
    healing_.reset();
    return;
  }
  if (!options_.heals) return;
  if (!healing_) healing_ = healing{.sequence = {context().env().random() | 1}};
  const auto log = kv_.log();
  if (std::ranges::equal(healing_->log, log)) return;
  healing_->log.assign(log.begin(), log.end());
  healing_->done = false;
  prefill(healing_->sequence, {++healing_->round.value}, healing_->log);
}

/// Takes the healed sequence between two answers, when it has the log that the next one starts from.
void edit_session::take_healed() {
  if (!healing_ || !healing_->done || borrower_ || !std::ranges::equal(healing_->log, kv_.log())) return;
  context().tell(options_.manager, release_sequence{sequence_});
  sequence_ = healing_->sequence;
  round_ = healing_->round;
  healing_.reset();
  preparing_ = false;
  kv_.become_exact();
  ++healed_count_;
}

void edit_session::prefill(sequence_id sequence, round_id number, std::span<const token> log,
                           std::vector<scheduler::log_splice> splices) {
  asked_ = context().now();
  if (!options_.manager) return ask_for_place(0);
  scheduler::round round{.sequence = sequence,
                         .number = number,
                         .kind = scheduler::round_kind::prefill,
                         .splices = std::move(splices),
                         .tail = {log.begin(), log.end()}};
  context().tell(options_.manager,
                 verify_run{.round = std::move(round),
                            .prompt_count = static_cast<std::uint32_t>(log.size()),
                            .terms = sequence_terms{.facts = {options_.tenant, options_.answers->context_max()}}});
}

void edit_session::repeat_prefill() {
  if (borrower_ || kv_.log().empty()) return;
  const bool heals = healing_ && !healing_->done;
  if (context().now() - asked_ < (preparing_ || heals ? patience : reminder)) return;
  if (!preparing_) ++round_.value;
  prefill(sequence_, round_, kv_.log());
  if (healing_) prefill(healing_->sequence, healing_->round, healing_->log);
}

void edit_session::on(const edit_file& m) {
  struct edit {
    std::vector<token> prompt;
    answer_terms spec;
    std::shared_ptr<const output_rules> rules;
  };
  in_turn(m, [this, m] {
    const auto job = [m, answers = options_.answers,
                      prompts = options_.prompts](workspace& files) -> outcome<edit, refusal> {
      const auto found = files.find(m.path, m.version);
      if (!found) return found.error();
      const auto& document = (*found)->document;
      if (auto why = answers->check_length(document.text().size(), "path")) return std::move(*why);
      const edit_task task{m.path, document.text(), m.instruction};
      if (const auto checked = check_editable(task); !checked) return refusal{.why = checked.error()};
      auto prompt = prompts->message_with_file(message_of(task), m.spec.created_seconds);
      if (!prompt) return refusal{.why = prompt.error()};
      auto rules = answers->rules_for(m.spec);
      if (!rules) return rules.error();
      edit out{std::move(*prompt), m.spec, std::move(*rules)};
      if (!m.predicts_file) return out;
      const std::string shown = shown_file(task);
      if (shown == document.text())
        out.spec.prediction.assign(document.tokens().begin(), document.tokens().end());
      else
        out.spec.prediction = answers->tokenizer()->encode(shown);
      return out;
    };
    work_on_files(m.exchange, files_->bytes(m.path), job, [this, exchange = m.exchange](edit task) {
      // A conversation of one turn has no older ones to evict.
      const auto turns = task.spec.eviction.policy == kv::eviction_policy::off
                             ? std::nullopt
                             : std::optional(std::vector<token_range>{});
      auto answer = options_.answers->prepare(task.spec, std::move(task.prompt), std::move(task.rules), turns, "path",
                                              options_.client);
      if (!answer) return refuse(exchange, answer.error());
      static_cast<void>(spawn_answer(exchange, task.spec.session, std::move(*answer)));
    });
  });
}

/// A live borrower ends and gives the sequence back. A dead one cannot be reached, which brings it back too.
void edit_session::on(const withdraw_call& m) {
  const auto is_it = [&](const auto& one) {
    if (one.exchange != m.exchange) return false;
    give_back(one.bytes);
    return true;
  };
  std::erase_if(calls_, is_it);
  std::erase_if(waiting_, is_it);
  if (borrower_ && borrower_->exchange == m.exchange) context().tell(borrower_->where, cancel_session{});
}

void edit_session::on(const sequence_returned& m) {
  const bool from_borrower = borrower_ && context().sender() == borrower_->where.where;
  if (from_borrower && m.sequence == sequence_) take_back();
}

void edit_session::take_back() {
  called_ = context().now();
  borrower_.reset();
  take_healed();
  lend_to_next();
  prepare();
}

// Only time is lost: the next completion computes what it needs, or gets the reason for the failure.
void edit_session::on(const refused& m) {
  context().log(log_level::debug, "the KV could not be prepared: " + m.why.describe());
}

// The log was sent in full, so the splices did not fit: the cache manager has a different log, or none.
void edit_session::on(const log_needed& m) {
  if (!preparing_ || m.sequence != sequence_ || m.round != round_) return;
  prefill(sequence_, {++round_.value}, kv_.log());
}

void edit_session::on(const prefilled& m) {
  if (healing_ && m.sequence == healing_->sequence && m.round == healing_->round) {
    healing_->done = true;
    take_healed();
    return;
  }
  if (!preparing_ || m.sequence != sequence_ || m.round != round_) return;
  preparing_ = false;
  kv_.note_exact(m.exact_count);
  heal();
}

void edit_session::on(const run_pending&) {}

// Only in a pool.
void edit_session::ask_for_place(actor::process_number not_process) {
  if (!options_.placer) return;
  context().tell(options_.placer, place_session{.session = options_.session,
                                                .model = options_.model,
                                                .numerics = borrower_ ? numerics_ : numerics_id(),
                                                .affinity = options_.session.value,
                                                .tokens_max = options_.answers->context_max(),
                                                .prompt_tokens = static_cast<std::uint32_t>(kv_.log().size()),
                                                .wants_draft = true,
                                                .not_process = not_process});
}

// The borrower has lost its cache manager, or cannot go on where it is placed.
void edit_session::on(const place_session& m) {
  if (!borrower_ || context().sender() != borrower_->where.where) return;
  if (m.not_process != 0 && m.not_process != actor::process_of(options_.manager.where)) {
    return context().send(borrower_->where.where, session_placed{.session = options_.session,
                                                                 .manager = options_.manager.where,
                                                                 .drafter = drafter_.where,
                                                                 .numerics = numerics_,
                                                                 .ask_again = true});
  }
  if (m.numerics) numerics_ = m.numerics;
  ask_for_place(m.not_process);
}

/// The sequence moves: its whole log is computed again there, exactly. A session that has borrowed it moves, too.
void edit_session::on(const session_placed& m) {
  const bool is_elsewhere = options_.manager.where != m.manager;
  numerics_ = m.numerics;
  if (m.drafter.value != 0) drafter_ = {m.drafter};
  if (is_elsewhere) {
    if (options_.manager) {
      context().tell(options_.manager, release_sequence{sequence_});
      if (healing_) context().tell(options_.manager, release_sequence{healing_->sequence});
      healing_.reset();
      kv_.become_exact();
    }
    options_.manager = {m.manager};
  }
  if (borrower_) return context().tell(borrower_->where, m);
  if (kv_.log().empty() || !(is_elsewhere || preparing_)) return;
  preparing_ = true;
  prefill(sequence_, {++round_.value}, kv_.log());
}

// The next completion asks again, or gets the reason for the failure.
void edit_session::on(const no_place& m) {
  options_.manager = {};
  if (borrower_) context().tell(borrower_->where, m);
}

void edit_session::on(const edit_session_tick&) {
  context().after(tick, edit_session_tick{});
  const bool idle = !borrower_ && waiting_.empty() && !busy_;
  if (idle && context().now() - called_ >= options_.idle_max) return context().stop();
  if (context().now() - shown_ >= patience) {
    shown_ = context().now();
    context().send(options_.client, edit_session_alive{options_.session});
  }
  repeat_prefill();
}

void edit_session::on(const actor::undeliverable& m) {
  if (m.to == options_.client) return context().stop();
  if (m.to == options_.manager.where && options_.placer) {
    if (m.why.code == errc::unreachable) ask_for_place(actor::process_of(m.to));
    return;
  }
  if (!borrower_ || m.to != borrower_->where.where) return;
  // The borrower died. A round that it asked for may still be on its way, so a round of our own follows it.
  prefill(sequence_, {++round_.value}, kv_.log());
  take_back();
}

void edit_session::on(const close_session& m) {
  context().send(options_.client, call_done{m.exchange});
  context().stop();
}

// The gateway receives edit_session_over and notifies clients that still wait. A borrowed sequence ends with its
// session.
void edit_session::on_stop() {
  context().send(options_.client, edit_session_over{options_.session});
  if (options_.placer) context().tell(options_.placer, leave_place{options_.session});
  if (!options_.manager) return;
  context().tell(options_.manager, release_sequence{sequence_});
  if (healing_) context().tell(options_.manager, release_sequence{healing_->sequence});
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::edit_session>;
