#include "actors/editing/edit_session.hpp"

#include "actors/http/openai/response.hpp"
#include "actors/serving/verify_scheduler.hpp"

namespace redline::actors {
namespace {

constexpr microseconds tick{1'000'000};
// What the scheduler was asked for is asked again, should it or the question have been lost.
constexpr microseconds patience{5'000'000};
// It forgets a sequence that nobody asks about for two minutes.
constexpr microseconds reminder{60'000'000};
// More than an answer can have. A loan takes them all, so that no count need come back from a session that died.
constexpr std::uint64_t rounds_of_loan = std::uint64_t{1} << 32;

api::json file_object(const workspace::file& f, bool with_text) {
  api::json object;
  object["object"] = "redline.file";
  object["path"] = f.path;
  object["version"] = f.document.version();
  object["bytes"] = f.document.text().size();
  object["lines"] = f.document.document().lines_count();
  object["tokens"] = f.document.tokens().size();
  if (with_text) object["text"] = f.document.text();
  return object;
}

}  // namespace

edit_session::edit_session(actor::actor_context& context, edit_identity who, workspace files)
    : actor_of(context),
      who_(std::move(who)),
      files_(std::move(files)),
      cache_(who_.cache.policy),
      sequence_{who_.session.value} {}

void edit_session::on_start() {
  called_ = asked_ = context().now();
  prepare();
  context().after(tick, edit_session_tick{});
}

void edit_session::on(const edit_call& m) {
  called_ = context().now();
  switch (m.verb) {
    case edit_verb::open:
      return show(m, 201);
    case edit_verb::show:
      return show(m, 200);
    case edit_verb::show_file:
      return show_file(m, true);
    case edit_verb::put_file:
      return put_file(m);
    case edit_verb::patch_file:
      return patch_file(m);
    case edit_verb::drop_file:
      return drop_file(m);
    case edit_verb::complete:
      return complete(m);
    case edit_verb::edit:
      return edit(m);
    case edit_verb::close:
      return close(m);
    case edit_verb::last_:
      break;
  }
  refuse(m.exchange, api::error_of({errc::internal, "a call without a meaning"}));
}

void edit_session::reply(std::uint64_t exchange, std::uint32_t status, const api::json& body) {
  context().send(who_.gateway, edit_reply{exchange, status, dump_json(body)});
}

void edit_session::refuse(std::uint64_t exchange, const api::api_error& why) {
  context().send(who_.gateway, edit_reply{exchange, why.status, api::error_body(why)});
}

void edit_session::show(const edit_call& m, std::uint32_t status) {
  api::json body;
  body["id"] = who_.name;
  body["object"] = "redline.session";
  body["model"] = who_.model;
  body["position_encoding"] = files_.how().units == text::position_encoding::utf8 ? "utf-8" : "utf-16";
  body["cache"] = {
      {"policy", api::name_of(who_.cache.policy)}, {"healing", who_.cache.heals}, {"healed", healed_count_}};
  body["kv"] = api::kv_object(cache_.worth());
  body["idle_seconds"] = who_.idle_max.count() / 1'000'000;
  body["files"] = api::json::array();
  for (const auto& f : files_.files()) body["files"].push_back(file_object(f, false));
  reply(m.exchange, status, body);
}

void edit_session::show_file(const edit_call& m, bool with_text, std::uint32_t status) {
  const auto found = files_.find(m.path);
  if (!found) return refuse(m.exchange, found.error());
  reply(m.exchange, status, file_object(**found, with_text));
}

void edit_session::put_file(const edit_call& m) {
  const auto given = api::parse_put_file(m.path, m.body, files_.how().limits);
  if (!given) return refuse(m.exchange, given.error());
  const bool is_new = !files_.find(m.path).has_value();
  if (const auto why = files_.put(*given)) return refuse(m.exchange, *why);
  prepare();
  show_file(m, false, is_new ? 201 : 200);
}

void edit_session::patch_file(const edit_call& m) {
  const auto request = api::parse_patch(m.body, files_.how().limits);
  if (!request) return refuse(m.exchange, request.error());
  const auto done = files_.patch(m.path, *request);
  if (!done) return refuse(m.exchange, done.error());
  std::size_t removed = 0;
  std::size_t inserted = 0;
  for (const auto& splice : *done) {
    removed += splice.remove_count;
    inserted += splice.insert.size();
  }
  prepare();
  auto body = file_object(**files_.find(m.path), false);
  body["tokens_removed"] = removed;
  body["tokens_inserted"] = inserted;
  body["kv"] = api::kv_object(cache_.worth());
  reply(m.exchange, 200, body);
}

void edit_session::drop_file(const edit_call& m) {
  if (const auto why = files_.drop(m.path)) return refuse(m.exchange, *why);
  prepare();
  context().send(who_.gateway, edit_reply{m.exchange, 204, {}});
}

void edit_session::complete(const edit_call& m) {
  const auto where = api::parse_place(m.body, false, files_.how().limits);
  if (!where) return refuse(m.exchange, where.error());
  auto laid_out = files_.lay_out(*where);
  if (!laid_out) return refuse(m.exchange, laid_out.error());
  if (waiting_.size() >= files_.how().limits.calls_max) {
    return refuse(m.exchange, api::error_of({errc::queue_full, "too many completions wait for this session"}));
  }
  files_.note_place(*where);
  waiting_.push_back({.exchange = m.exchange,
                      .prompt = std::move(laid_out->prompt),
                      .stops = std::move(laid_out->stops),
                      .path = where->path,
                      .version = laid_out->version});
  lend_to_next();
}

void edit_session::lend_to_next() {
  if (borrowed_by_ != 0 || waiting_.empty()) return;
  edit_prompt_made next = std::move(waiting_.front());
  waiting_.pop_front();
  // Without splices the answer's session itself tells the scheduler all there is to tell.
  if (auto splices = cache_.follow(next.prompt); !splices.empty()) {
    tell_scheduler(sequence_, {++round_.value}, next.prompt, std::move(splices));
  }
  preparing_ = false;
  next.sequence = sequence_;
  next.last_round = round_;
  round_.value += rounds_of_loan;
  borrowed_by_ = next.exchange;
  context().send(who_.gateway, next);
}

void edit_session::prepare() {
  if (borrowed_by_ != 0 || !waiting_.empty()) return;
  auto next = files_.expected();
  if (!next) return;
  // Behind the prompt lies what was last answered: it may be typed next, so its KV is left alone.
  if (next->prompt != cache_.log()) {
    auto splices = cache_.follow(std::move(next->prompt));
    tell_scheduler(sequence_, {++round_.value}, cache_.log(), std::move(splices));
    preparing_ = true;
  }
  heal();
}

/// A later text overtakes an older one; what both begin with is not computed twice.
void edit_session::heal() {
  if (cache_.is_exact()) {
    if (healing_) context().tell(who_.scheduler, release_sequence{healing_->sequence});
    healing_.reset();
    return;
  }
  if (!who_.cache.heals) return;
  if (!healing_) healing_ = healing{.sequence = {context().env().random() | 1}};
  if (healing_->log == cache_.log()) return;
  healing_->log = cache_.log();
  healing_->done = false;
  tell_scheduler(healing_->sequence, {++healing_->round.value}, healing_->log);
}

/// Between two answers, when what was computed is what the next one starts from.
void edit_session::take_healed() {
  if (!healing_ || !healing_->done || borrowed_by_ != 0 || healing_->log != cache_.log()) return;
  context().tell(who_.scheduler, release_sequence{sequence_});
  sequence_ = healing_->sequence;
  round_ = healing_->round;
  healing_.reset();
  preparing_ = false;
  cache_.become_exact();
  ++healed_count_;
}

void edit_session::tell_scheduler(sequence_id sequence, round_id round, const std::vector<token>& log,
                                  std::vector<log_splice> splices) {
  asked_ = context().now();
  context().tell(who_.scheduler, verify_run{.sequence = sequence,
                                            .tenant = who_.tenant,
                                            .round = round,
                                            .log = {0, log},
                                            .prompt_count = static_cast<std::uint32_t>(log.size()),
                                            .tokens_max = files_.how().context_max,
                                            .splices = std::move(splices),
                                            .prefill_only = true});
}

void edit_session::remind_scheduler() {
  if (borrowed_by_ != 0 || cache_.log().empty()) return;
  const bool heals = healing_ && !healing_->done;
  if (context().now() - asked_ < (preparing_ || heals ? patience : reminder)) return;
  if (!preparing_) ++round_.value;
  tell_scheduler(sequence_, round_, cache_.log());
  if (healing_) tell_scheduler(healing_->sequence, healing_->round, healing_->log);
}

void edit_session::edit(const edit_call& m) {
  const auto where = api::parse_place(m.body, true, files_.how().limits);
  if (!where) return refuse(m.exchange, where.error());
  const auto found = files_.find(where->path, where->version);
  if (!found) return refuse(m.exchange, found.error());
  context().send(who_.gateway, edit_prompt_made{.exchange = m.exchange,
                                                .path = where->path,
                                                .text = (*found)->document.text(),
                                                .instruction = where->instruction,
                                                .version = (*found)->document.version()});
}

void edit_session::on(const edit_withdraw& m) {
  std::erase_if(waiting_, [&](const edit_prompt_made& p) { return p.exchange == m.exchange; });
  // The answer could not begin, or its session died: nobody has the sequence.
  if (borrowed_by_ != m.exchange) return;
  tell_scheduler(sequence_, {++round_.value}, cache_.log());
  on(sequence_returned{sequence_});
}

void edit_session::on(const sequence_returned& m) {
  if (m.sequence != sequence_) return;
  called_ = context().now();
  borrowed_by_ = 0;
  take_healed();
  lend_to_next();
  prepare();
}

void edit_session::on(const verdict& m) {
  if (m.why_not) {
    // Nothing is lost but time: the next completion computes what it needs, or is told why not.
    context().log(log_level::debug, "the KV could not be prepared: " + m.why_not->describe());
    return;
  }
  if (healing_ && m.sequence == healing_->sequence && m.round == healing_->round) {
    healing_->done = true;
    take_healed();
    return;
  }
  if (!preparing_ || m.sequence != sequence_ || m.round != round_) return;
  if (m.log_needed_from) {
    // The log was sent whole, so it is the splices that did not fit: the scheduler knows another log, or none.
    tell_scheduler(sequence_, {++round_.value}, cache_.log());
    return;
  }
  preparing_ = false;
  cache_.note_exact(m.exact_count);
  heal();
}

void edit_session::on(const run_pending&) {}

void edit_session::on(const edit_session_tick&) {
  context().after(tick, edit_session_tick{});
  const bool idle = borrowed_by_ == 0 && waiting_.empty();
  if (idle && context().now() - called_ >= who_.idle_max) return context().stop();
  remind_scheduler();
}

void edit_session::on(const actor::undeliverable& m) {
  if (m.to == who_.gateway) context().stop();
}

void edit_session::close(const edit_call& m) {
  context().send(who_.gateway, edit_reply{m.exchange, 204, {}});
  context().stop();
}

// Whoever still waits is told by the gateway, which hears edit_session_over. A borrowed sequence goes with its session.
void edit_session::on_stop() {
  context().send(who_.gateway, edit_session_over{who_.session});
  context().tell(who_.scheduler, release_sequence{sequence_});
  if (healing_) context().tell(who_.scheduler, release_sequence{healing_->sequence});
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::edit_session>;
