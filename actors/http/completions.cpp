#include "actors/http/completions.hpp"

#include <algorithm>
#include <iterator>

#include "actors/http/api_keys.hpp"
#include "actors/http/openai/edit_response.hpp"
#include "actors/http/resumption.hpp"
#include "runtime/base/hash.hpp"

namespace redline::actors {
namespace {

api::usage_report to_usage(const session_stats& s) {
  api::usage_report u;
  u.prompt_tokens = s.prompt_tokens;
  u.completion_tokens = s.completion_tokens;
  u.drafted = s.drafted;
  u.accepted = s.accepted;
  const auto report = [&s](draft::source from) { return api::source_report{s.of(from).drafted, s.of(from).accepted}; };
  u.lookup = report(draft::source::lookup);
  u.draft_model = report(draft::source::model);
  u.prediction = report(draft::source::prediction);
  u.program = report(draft::source::program);
  u.copied_forced = s.copied_forced;
  u.copied_verified = s.copied_verified;
  u.target_passes = s.target_passes;
  u.draft_passes = s.draft_passes;
  u.rows = s.target_rows;
  u.cached_tokens = s.cached_tokens;
  u.evicted = s.evicted_tokens;
  u.evictions = s.evictions;
  u.reevaluated = s.reevaluated;
  u.seconds = static_cast<double>(s.total_us) / 1e6;
  return u;
}

std::optional<api::program_report> to_program(const copy_report& copied) {
  if (copied.program.empty()) return std::nullopt;
  api::program_report out{.program = copied.program, .spans = {}};
  for (const auto& s : copied.spans) {
    out.spans.push_back({s.file, s.of == copy::unit::lines ? "lines" : "tokens", s.first, s.last,
                         s.forced ? "forced" : "verified", name_of(s.reason), s.tokens});
  }
  return out;
}

std::vector<api::token_report> report_tokens(const served_model& model, const session_text& m) {
  const auto bytes = [&](token t) { return std::string(model.answers->tokenizer()->piece(t, true)); };
  std::vector<api::token_report> reports;
  for (std::size_t i = 0; i < m.logprobs.size() && i < m.tokens.size(); ++i) {
    api::token_report report{.chosen = {bytes(m.tokens[i]), m.logprobs[i].logprob}};
    for (const auto& t : m.logprobs[i].top) report.top.push_back({bytes(t.id), t.logprob});
    reports.push_back(std::move(report));
  }
  return reports;
}

constexpr std::size_t session_key_bytes_max = 256;

/// For the placer of a pool; 0: no key.
std::uint64_t hash_session_key(tenant_id tenant, const std::string& key) {
  if (key.empty()) return 0;
  return fnv1a().add(std::to_string(tenant.value)).add(std::uint8_t{0}).add(key).value() | 1;
}

constexpr microseconds between_signs_of_progress{1'000'000};

api::finish_reason to_public(finish_reason r) {
  return r == finish_reason::length ? api::finish_reason::length : api::finish_reason::stop;
}

}  // namespace

completions::completions(actor::actor_context& context, std::shared_ptr<const gateway_services> services,
                         const readiness& ready, http_replies& replies, request_reader& reader)
    : context_(context), services_(std::move(services)), ready_(ready), replies_(replies), reader_(reader) {}

// ---- from a request to its sessions --------------------------------------------------------------------------------

void completions::serve(const route_context& r, api::endpoint from) {
  if (const auto why = ready_.why_not(context_.now())) return replies_.refuse(r.who, *why);
  if (const auto why = room_for(1, r.who.tenant)) return replies_.refuse(r.who, *why);
  reader_.read(
      r,
      [services = services_, from, when = look_at(r)](const std::string& body) {
        return read(*services, body, from, when);
      },
      [this, who = r.who](ready_request request) { begin(who, std::move(request)); });
}

void completions::render(const route_context& r, api::endpoint from) {
  const auto name = api::response_id(from, context_.env().random(), context_.env().random());
  reader_.read(
      r,
      [services = services_, from, name,
       now = context_.env().unix_seconds()](const std::string& body) -> api::checked<std::string> {
        const auto parsed =
            from == api::endpoint::chat ? api::parse_chat_request(body) : api::parse_completion_request(body);
        if (!parsed) return parsed.error();
        const auto model = services->find_model(parsed->model);
        if (!model) return model.error();
        const auto prompts = build_prompts(*services, **model, *parsed, now);
        if (!prompts) return prompts.error();
        std::vector<std::vector<token>> tokens;
        for (const auto& p : *prompts) tokens.push_back(p.tokens);
        return api::rendered_body(from, name, (*model)->name, parsed->cache_salt, tokens);
      },
      [this, who = r.who](std::string answer) { replies_.respond(who, 200, std::move(answer)); });
}

completions::circumstances completions::look_at(const route_context& r) const {
  const auto* id = find_header(r.request.headers, "last-event-id");
  const auto* session = find_header(r.request.headers, "x-session-id");
  return {r.who.tenant, context_.env().unix_seconds(), id ? *id : std::string(),
          session ? session->substr(0, session_key_bytes_max) : std::string()};
}

api::checked<completions::ready_request> completions::read(const gateway_services& services, const std::string& body,
                                                           api::endpoint from, const circumstances& when) {
  auto parsed = from == api::endpoint::chat ? api::parse_chat_request(body) : api::parse_completion_request(body);
  if (!parsed) return parsed.error();
  const auto model = services.find_model(parsed->model);
  if (!model) return model.error();
  auto what = read_expected(services, *model, std::move(*parsed), when);
  if (!what) return what.error();
  auto prompts = build_prompts(services, **model, what->asked, what->spec.created_seconds);
  if (!prompts) return prompts.error();
  auto rules = (*model)->answers->rules_for(what->spec);
  if (!rules) return api::error_of(rules.error(), {});
  return ready_request{std::move(*what), std::move(*prompts), std::move(*rules)};
}

void completions::begin(const caller& who, ready_request request) {
  if (const auto why = ready_.why_not(context_.now())) return replies_.refuse(who, *why);
  auto state = make_state(who, request.what);
  if (const auto why = open_sessions(state, request)) {
    for (const auto& c : state.choices) {
      answers_.erase(c.session);
      if (c.where) context_.tell(c.where, cancel_session{});
    }
    return replies_.refuse(who, *why);
  }
  const auto at = requests_.emplace(who.exchange, std::move(state)).first;
  if (at->second.is_over()) finish(at);  // the client had all but the last word
}

completions::request_state completions::make_state(const caller& who, expected& from) {
  request_state r{.who = who, .asked = std::move(from.asked), .model = std::move(from.model)};
  const std::uint64_t high = from.had ? from.had->response_high : context_.env().random();
  const std::uint64_t low = from.had ? from.had->response_low : context_.env().random();
  const auto begin = first_event_id(*r.model, r.asked, high, low, from.spec.created_seconds);
  r.head = {.from = r.asked.from,
            .id = api::response_id(r.asked.from, high, low),
            .created_seconds = from.spec.created_seconds,
            .model = r.model->name,
            .system_fingerprint = r.model->fingerprint};
  if (r.asked.stream) r.events = std::make_unique<api::event_writer>(r.head, r.asked.include_usage, begin, from.had);
  if (!r.asked.has_seed) r.asked.sampling.seed = begin.seed();
  if (from.had) {
    services_->probe->stream_resumed();
    context_.log(log_level::info, "a stream is resumed", {{"request", who.request_id}, {"response", r.head.id}});
  }
  return r;
}

api::checked<std::vector<completions::prompt>> completions::build_prompts(const gateway_services& services,
                                                                          const served_model& model,
                                                                          const api::generation_request& request,
                                                                          std::int64_t now) {
  std::vector<prompt> out;
  const auto& builder = *model.prompts;
  const bool evicts = request.evicting(services.eviction_defaults).policy != kv::eviction_policy::off;
  // A longer text is not made tokens only to be refused. Of an evicting conversation older turns may be left out.
  const auto check = [&](std::size_t bytes, const std::string& field) {
    const auto why = evicts ? std::nullopt : model.answers->check_length(bytes, field);
    return why ? std::optional(api::error_of(*why, {})) : std::nullopt;
  };
  if (request.from == api::endpoint::chat) {
    if (request.calls_tools()) {
      if (const auto why = builder.tools().why_no_tools()) {
        return api::bad_field("tools", why->context, "unsupported_parameter");
      }
    }
    std::size_t bytes = 0;
    for (const auto& m : request.messages) {
      if (m["content"].is_string()) bytes += m["content"].get_ref<const std::string&>().size();
    }
    if (const auto why = check(bytes, "messages")) return *why;
    const auto rendered = builder.render(request.messages, true, now, request.tools ? &*request.tools : nullptr);
    if (!rendered) {
      if (rendered.error().code == errc::invalid_argument) return api::bad_field("messages", rendered.error().context);
      return api::error_of(rendered.error());
    }
    if (const auto why = check(rendered->text.size(), "messages")) return *why;
    out.push_back({builder.tokens(*rendered), std::nullopt});
    if (evicts) out.back().turns = builder.turns(*rendered, out.back().tokens, now);
    return out;
  }
  for (const auto& p : request.prompts) {
    if (const auto* tokens = std::get_if<std::vector<token>>(&p)) {
      out.push_back({*tokens, std::nullopt});
      continue;
    }
    const auto& text = std::get<std::string>(p);
    if (const auto why = check(text.size(), "prompt")) return *why;
    out.push_back({builder.text(text), std::nullopt});
  }
  return out;
}

api::checked<completions::expected> completions::read_expected(const gateway_services& services,
                                                               std::shared_ptr<const served_model> model,
                                                               api::generation_request asked,
                                                               const circumstances& when) {
  if (!when.session_key.empty()) asked.session_key = when.session_key;
  auto had = read_resumption(*model, asked, when.last_event_id);
  if (!had) return had.error();
  answer_spec spec{.tenant = when.tenant,
                   .tokens_max = asked.tokens_max,
                   .tokens_min = asked.tokens_min,
                   .stops = asked.stop,
                   .ignore_end = asked.ignore_eos,
                   .sampling = asked.sampling,
                   .draft = asked.drafting(model->draft_defaults),
                   .eviction = asked.evicting(services.eviction_defaults),
                   .schema = asked.schema,
                   .created_seconds = *had ? (*had)->created_seconds : when.unix_seconds};
  if (!asked.cache_salt.empty()) spec.prefix_scope = to_prefix_scope(when.tenant, asked.cache_salt);
  if (asked.resume_texts.size() == 1) spec.known_text = asked.resume_texts.front();
  if (asked.logprobs) spec.logprobs = asked.top_logprobs;
  if (asked.copy) {
    const auto& c = *asked.copy;
    spec.copy = copy_spec{{.trust = *parse_copy_trust(c.trust),
                           .line_spans = c.line_spans,
                           .token_spans = c.token_spans,
                           .anchors = c.anchors},
                          c.files};
    if (c.confidence_min) spec.copy->options.confidence_min = *c.confidence_min;
  }
  if (asked.prediction) {
    const std::string field = "prediction.content";
    if (const auto why = model->answers->check_length(asked.prediction->size(), field)) {
      return api::error_of(*why, {});
    }
    spec.prediction = model->answers->tokenizer()->encode(*asked.prediction);
    const auto most = model->answers->context_max();
    if (spec.prediction.size() > most) {
      return api::bad_field(field,
                            "'" + field + "' has " + std::to_string(spec.prediction.size()) +
                                " tokens, more than the context of " + std::to_string(most) + ".",
                            "context_length_exceeded");
    }
  }
  return expected{std::move(asked), std::move(model), std::move(spec), std::move(*had)};
}

/// When all places are taken, a tenant may still have its share of them: what it would have if all who have some had as
/// many. So one tenant cannot keep another out, and one that is alone has them all.
std::optional<api::api_error> completions::room_for(std::size_t answers, tenant_id tenant) const {
  if (answers_.size() + answers <= services_->sessions_max) return std::nullopt;
  std::unordered_map<tenant_id, std::size_t> by_tenant{{tenant, answers}};
  for (const auto& [session, place] : answers_) {
    if (const auto r = requests_.find(place.first); r != requests_.end()) ++by_tenant[r->second.who.tenant];
  }
  if (by_tenant.at(tenant) * by_tenant.size() <= services_->sessions_max) return std::nullopt;
  return api::error_of({errc::queue_full, std::to_string(answers_.size()) + " answers are in progress, " +
                                              std::to_string(by_tenant.at(tenant) - answers) + " of them yours"});
}

std::optional<api::api_error> completions::open_sessions(request_state& r, const ready_request& from) {
  const auto& asked = r.asked;
  if (auto why = room_for(from.prompts.size() * asked.n, r.who.tenant)) return why;
  answer_spec spec = from.what.spec;
  auto partners = r.model->answers->partners_for(spec.draft.how, context_.self());
  if (!partners) return api::error_of(partners.error(), r.who.request_id);
  partners->place.affinity = hash_session_key(r.who.tenant, asked.session_key);
  const std::string field = asked.from == api::endpoint::chat ? "messages" : "prompt";
  for (const auto& p : from.prompts) {
    for (std::uint32_t i = 0; i < asked.n; ++i) {
      const std::size_t index = r.choices.size();
      if (from.what.had && from.what.had->choices[index].is_over && !from.what.had->wants_usage(asked.include_usage)) {
        r.events->skip(static_cast<std::uint32_t>(index));
        r.choices.push_back({.over = true});
        continue;
      }
      if (index < asked.resume_texts.size()) spec.known_text = asked.resume_texts[index];
      if (from.what.had) spec.numerics = numerics_id(from.what.had->choices[index].numerics);
      spec.session = {context_.env().random() | 1};
      spec.sampling.seed = asked.sampling.seed + i;
      auto work = r.model->answers->make(spec, p.tokens, from.rules, p.turns, field);
      if (!work) return api::error_of(work.error(), r.who.request_id);
      answers_[spec.session] = {r.who.exchange, index};
      r.choices.push_back({.session = spec.session,
                           .where = context_.spawn<session>("session " + std::to_string(spec.session.value),
                                                            {1024, 1024}, std::move(*work), *partners)});
    }
  }
  return std::nullopt;
}

std::optional<answer_spec> completions::expect(const caller& who, expected request,
                                               actor::actor_ref<edit_session> writer) {
  if (const auto why = room_for(1, who.tenant)) {
    replies_.refuse(who, *why);
    return std::nullopt;
  }
  auto state = make_state(who, request);
  if (request.had && request.had->is_all(state.asked.include_usage)) {
    state.events->skip(0);
    state.choices.push_back({.over = true});
    finish(requests_.emplace(who.exchange, std::move(state)).first);
    return std::nullopt;
  }
  answer_spec spec = std::move(request.spec);
  spec.session = {context_.env().random() | 1};
  spec.sampling.seed = state.asked.sampling.seed;
  if (request.had) spec.numerics = numerics_id(request.had->choices.front().numerics);
  state.writer = writer;
  state.choices.push_back({.session = spec.session});
  answers_[spec.session] = {who.exchange, 0};
  requests_.emplace(who.exchange, std::move(state));
  return spec;
}

void completions::on(const answer_started& m) {
  const actor::actor_ref<session> where{m.where};
  const auto r = requests_.find(m.exchange);
  if (r == requests_.end()) return context_.tell(where, cancel_session{});  // the client left meanwhile
  r->second.choices.front().where = where;
}

// ---- from a session to the client ----------------------------------------------------------------------------------

std::pair<completions::requests::iterator, std::size_t> completions::find(session_id session) {
  const auto at = answers_.find(session);
  if (at == answers_.end()) return {requests_.end(), 0};
  return {requests_.find(at->second.first), at->second.second};
}

void completions::on(const session_text& m) {
  const auto [at, index] = find(m.session);
  if (at == requests_.end()) return;
  request_state& r = at->second;
  choice_state& c = r.choices[index];
  if (!std::exchange(r.has_text, true)) services_->probe->first_text(context_.now() - r.who.arrived);
  services_->probe->tokens_generated(m.tokens.size());
  if (m.numerics) r.head.system_fingerprint = make_fingerprint(r.model->digest, m.numerics);
  auto reports = report_tokens(*r.model, m);
  if (!r.events) {
    if (context_.now() >= r.progress_told + between_signs_of_progress) {
      r.progress_told = context_.now();
      replies_.note_progress(r.who);
    }
    c.text += m.text;
    c.tokens.insert(c.tokens.end(), std::make_move_iterator(reports.begin()), std::make_move_iterator(reports.end()));
    return;
  }
  std::string events;
  const auto number = static_cast<std::uint32_t>(index);
  r.events->note_numerics(number, (m.numerics ? m.numerics : r.model->numerics).value, r.head.system_fingerprint);
  if (!std::exchange(c.begun, true)) events += r.events->first(number);
  events += r.events->delta(number, m.text, r.asked.logprobs ? &reports : nullptr);
  stream(at, std::move(events));
}

/// Sends events, unless what the client has is not how the answer begins.
bool completions::stream(requests::iterator at, std::string events, bool end) {
  request_state& r = at->second;
  // Before there is anything to say, too: while an answer is made again, nothing else shows that it is.
  if (!std::exchange(r.stream_begun, true)) replies_.begin_stream(r.who);
  if (r.events->has_diverged()) {
    fail(at, diverged_answer(), "it is resumed, and differs from how it began");
    return false;
  }
  if (!events.empty() || end) replies_.stream(r.who, std::move(events), end);
  return true;
}

void completions::on(const session_finished& m) {
  const auto [at, index] = find(m.session);
  if (at == requests_.end()) return;
  request_state& r = at->second;
  services_->probe->answer_finished(m.stats);
  if (m.reason == finish_reason::failed) {
    const auto why = m.why_not.value_or(failure{errc::internal, "the session failed"});
    auto error = api::error_of(why, r.who.request_id);
    if (m.retry_after_ms > 0) error.retry_after_seconds = (m.retry_after_ms + 999) / 1000;
    return fail(at, error, why.describe());
  }
  choice_state& c = r.choices[index];
  c.over = true;
  c.finish = m.reason;
  c.stats = m.stats;
  c.copied = m.copied;
  answers_.erase(m.session);
  if (r.events) {
    const auto number = static_cast<std::uint32_t>(index);
    std::string events;
    const auto program = to_program(c.copied);
    if (!std::exchange(c.begun, true)) events += r.events->first(number);
    events += r.events->finish(number, to_public(m.reason), program ? &*program : nullptr);
    if (!stream(at, std::move(events))) return;
  }
  if (r.is_over()) finish(at);
}

api::usage_report completions::sum_usage(const request_state& r) const {
  api::usage_report usage;
  for (std::size_t i = 0; i < r.choices.size(); ++i) {
    auto one = to_usage(r.choices[i].stats);
    if (i % r.asked.n != 0) one.prompt_tokens = one.cached_tokens = 0;  // one prompt, n answers
    usage += one;
  }
  usage.eviction = name_of(r.asked.evicting(services_->eviction_defaults).policy);
  if (r.writer && r.asked.from == api::endpoint::completions) {
    // There is one answer, and its window, should it have one, has not moved when it begins.
    const auto& s = r.choices.front().stats;
    usage.kv = api::kv_report{s.prompt_exact, 0, s.prompt_tokens - std::min(s.prompt_exact, s.prompt_tokens)};
  }
  return usage;
}

void completions::finish(requests::iterator at) {
  request_state& r = at->second;
  const auto usage = sum_usage(r);
  const auto millis = (context_.now() - r.who.arrived).count() / 1000;
  if (r.events) {
    stream(at, r.events->usage(usage) + api::event_writer::done(), true);
  } else {
    std::vector<api::choice> choices;
    for (std::size_t i = 0; i < r.choices.size(); ++i) {
      auto& c = r.choices[i];
      choices.push_back(
          {.index = static_cast<std::uint32_t>(i), .text = std::move(c.text), .finish = to_public(c.finish)});
      choices.back().program = to_program(c.copied);
      if (r.asked.logprobs) choices.back().tokens = std::move(c.tokens);
    }
    replies_.respond(r.who, 200, api::completion_body(r.head, choices, usage),
                     {{"openai-processing-ms", std::to_string(millis)}});
  }
  note_end(r, r.choices.front().finish == finish_reason::length ? request_end::length : request_end::stop);
  services_->probe->prompt_read(usage.prompt_tokens);
  context_.log(log_level::info, "request answered",
               {{"request", r.who.request_id},
                {"tenant", r.who.tenant.value},
                {"prompt_tokens", usage.prompt_tokens},
                {"cached_tokens", usage.cached_tokens},
                {"completion_tokens", usage.completion_tokens},
                {"target_passes", usage.target_passes},
                {"drafted", usage.drafted},
                {"accepted", usage.accepted},
                {"ms", millis}});
  requests_.erase(at);
}

// ---- what goes wrong -----------------------------------------------------------------------------------------------

void completions::note_end(const request_state& r, request_end how) {
  services_->probe->request_finished(how, context_.now() - r.who.arrived);
}

void completions::fail(requests::iterator at, const api::api_error& why, std::string_view for_log) {
  const request_state& r = at->second;
  context_.log(log_level::warning, "request failed: " + std::string(for_log), {{"request", r.who.request_id}});
  if (r.stream_begun)
    replies_.stream(r.who, api::error_event(why), true);
  else
    replies_.refuse(r.who, why);
  note_end(r, request_end::error);
  drop(at);
}

void completions::drop(requests::iterator at) {
  for (const auto& c : at->second.choices) {
    answers_.erase(c.session);
    if (!c.over && c.where) context_.tell(c.where, cancel_session{});
  }
  if (at->second.writer) context_.tell(at->second.writer, withdraw_call{at->first});
  requests_.erase(at);
}

void completions::refuse(std::uint64_t exchange, const refusal& why) {
  const auto at = requests_.find(exchange);
  if (at == requests_.end()) return;
  replies_.refuse(at->second.who, api::error_of(why, at->second.who.request_id));
  answers_.erase(at->second.choices.front().session);
  requests_.erase(at);
}

void completions::writer_is_gone(actor::actor_ref<edit_session> writer, const api::api_error& why) {
  for (auto at = requests_.begin(); at != requests_.end();) {
    const auto& r = at->second;
    if (r.writer != writer || r.choices.front().where) {
      ++at;
      continue;
    }
    replies_.refuse(r.who, why);
    answers_.erase(r.choices.front().session);
    at = requests_.erase(at);
  }
}

void completions::fail_all(const failure& why, std::uint32_t retry_after_ms) {
  while (!requests_.empty()) {
    auto error = api::error_of(why, requests_.begin()->second.who.request_id);
    error.retry_after_seconds = (retry_after_ms + 999) / 1000;
    fail(requests_.begin(), error, why.describe());
  }
}

bool completions::session_died(actor::address where) {
  for (auto at = requests_.begin(); at != requests_.end(); ++at) {
    const auto& all = at->second.choices;
    if (std::none_of(all.begin(), all.end(), [&](const choice_state& c) { return c.where.where == where; })) continue;
    const failure why{errc::session_lost, "the session of this answer died"};
    fail(at, api::error_of(why, at->second.who.request_id), why.describe());
    return true;
  }
  return false;
}

void completions::answer_lost(std::uint64_t exchange, const failure& why) {
  const auto at = requests_.find(exchange);
  if (at == requests_.end()) return;
  context_.log(log_level::warning, "an answer cannot be delivered: " + why.describe(),
               {{"request", at->second.who.request_id}});
  note_end(at->second, request_end::error);
  drop(at);
}

bool completions::client_left(std::uint64_t exchange) {
  const auto at = requests_.find(exchange);
  if (at == requests_.end()) return false;
  context_.log(log_level::info, "the client left", {{"request", at->second.who.request_id}});
  note_end(at->second, request_end::abort);
  drop(at);
  return true;
}

void completions::on(const http_flow& m) {
  const auto at = requests_.find(m.exchange);
  if (at == requests_.end()) return;
  for (const auto& c : at->second.choices) {
    if (!c.over && c.where) context_.tell(c.where, pause_session{m.paused});
  }
}

}  // namespace redline::actors
