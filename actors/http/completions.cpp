#include "actors/http/completions.hpp"

#include <algorithm>
#include <iterator>

#include "actors/http/answer_reports.hpp"
#include "actors/http/resumption.hpp"
#include "actors/http/routing/api_keys.hpp"
#include "actors/http/shapes/openai/edit_response.hpp"
#include "actors/http/shapes/openai/request.hpp"
#include "actors/http/shapes/openai/response.hpp"
#include "runtime/base/hash.hpp"
#include "runtime/base/tenant_share.hpp"

namespace redline::actors {
namespace {

bool reports_tokens(const api::generation_request& asked) { return asked.logprobs || asked.shows_ids(); }

// A stream's last event is written on this thread, so it does not include a longer prompt.
constexpr std::size_t streamed_prompt_bytes_max = 256 << 10;

// A shorter answer is written in half a millisecond, so it stays on this thread.
constexpr std::uint64_t small_answer_bytes = 16 << 10;

/// The key for a pool's placer; 0 means no key.
std::uint64_t hash_session_key(tenant_id tenant, const std::string& key) {
  if (key.empty()) return 0;
  return fnv1a().add(std::to_string(tenant.value)).add(std::uint8_t{0}).add(key).value() | 1;
}

constexpr microseconds between_signs_of_progress{1'000'000};

api::finish_reason to_public(finish_reason r, bool has_calls, bool is_legacy) {
  if (r == finish_reason::length) return api::finish_reason::length;
  if (!has_calls) return api::finish_reason::stop;
  return is_legacy ? api::finish_reason::function_call : api::finish_reason::tool_calls;
}

using part_kind = grammar::answer_part::kind;

void add_thoughts(const tools::reasoning_splitter::parts& from, std::vector<grammar::answer_part>& out) {
  if (!from.reasoning.empty()) out.push_back({part_kind::reasoning, from.reasoning});
  if (!from.answer.empty()) out.push_back({part_kind::text, from.answer});
}

/// Splits the text parts, which may contain reasoning; calls stay as they are.
std::vector<grammar::answer_part> tell_thoughts(tools::reasoning_splitter& thoughts,
                                                std::vector<grammar::answer_part> parts) {
  std::vector<grammar::answer_part> out;
  for (auto& part : parts) {
    if (part.what == part_kind::text)
      add_thoughts(thoughts.feed(part.text), out);
    else
      out.push_back(std::move(part));
  }
  return out;
}

}  // namespace

completions::completions(actor::actor_context& context, std::shared_ptr<const gateway_services> services,
                         const readiness& ready, http_replies& replies, request_reader& reader)
    : context_(context), services_(std::move(services)), ready_(ready), replies_(replies), reader_(reader) {}

// ---- from a request to its sessions --------------------------------------------------------------------------------

void completions::serve(const route_context& r, api::request_parser parse) {
  if (const auto why = ready_.why_not(context_.now())) return replies_.refuse(r.who, *why);
  if (const auto why = room_for(1, r.who.tenant)) return replies_.refuse(r.who, *why);
  reader_.read(
      r,
      [services = services_, parse, when = look_at(r)](const std::string& body) {
        return read_request(*services, body, parse, when);
      },
      [this, who = r.who](parsed_request request) { begin(who, std::move(request)); });
}

void completions::count(const route_context& r, api::request_parser parse, std::string (*body)(std::size_t)) {
  reader_.read(
      r,
      [services = services_, parse, body,
       now = context_.env().unix_seconds()](const std::string& given) -> api::checked<std::string> {
        auto parsed = parse(given, limits_for(*services));
        if (!parsed) return parsed.error();
        const auto asked = read_prompts(*services, std::move(*parsed), now);
        if (!asked) return asked.error();
        std::size_t tokens = 0;
        for (const auto& p : asked->prompts) tokens += p.tokens.size();
        return body(tokens);
      },
      [this, who = r.who](std::string answer) { replies_.respond(who, 200, std::move(answer)); });
}

void completions::render(const route_context& r, api::endpoint from) {
  const auto name = api::response_id(from, context_.env().random(), context_.env().random());
  reader_.read(
      r,
      [services = services_, from, name,
       now = context_.env().unix_seconds()](const std::string& body) -> api::checked<std::string> {
        const auto limits = limits_for(*services);
        auto parsed = from == api::endpoint::chat ? api::parse_chat_request(body, limits)
                                                  : api::parse_completion_request(body, limits);
        if (!parsed) return parsed.error();
        const auto asked = read_prompts(*services, std::move(*parsed), now);
        if (!asked) return asked.error();
        std::vector<std::vector<token>> tokens;
        for (const auto& p : asked->prompts) tokens.push_back(p.tokens);
        return api::rendered_body(from, name, asked->model->name, asked->cache_salt, tokens);
      },
      [this, who = r.who](std::string answer) { replies_.respond(who, 200, std::move(answer)); });
}

constexpr std::size_t session_key_bytes_max = 256;

request_circumstances completions::look_at(const route_context& r) const {
  const auto* id = find_header(r.request.headers, "last-event-id");
  const auto* session = find_header(r.request.headers, "x-session-id");
  return {r.who.tenant, context_.env().unix_seconds(), id ? *id : std::string(),
          session ? session->substr(0, session_key_bytes_max) : std::string()};
}

void completions::begin(const caller& who, parsed_request request) {
  if (const auto why = ready_.why_not(context_.now())) return replies_.refuse(who, *why);
  std::size_t prompt_tokens = 0;
  for (const auto& p : request.prompts) prompt_tokens += p.tokens.size();
  byte_budget::claim held(services_->request_bytes, who.tenant);
  if (const auto why = services_->hold(held, request.bytes)) return replies_.refuse(who, *why);
  auto state = make_state(who, request.what, std::move(held), prompt_tokens);
  if (const auto why = open_sessions(state, request)) {
    for (const auto& c : state.choices) {
      answers_.erase(c.session);
      if (c.where) context_.tell(c.where, cancel_session{});
    }
    return replies_.refuse(who, *why);
  }
  const auto at = requests_.emplace(who.exchange, std::move(state)).first;
  if (at->second.is_over()) finish(at);  // the client already had all but the end
}

completions::request_state completions::make_state(const caller& who, expected_answer& from, byte_budget::claim held,
                                                   std::size_t prompt_tokens) {
  const std::uint64_t held_bytes = held.bytes();
  request_state r{.who = who,
                  .asked = std::move(from.asked),
                  .model = std::move(from.model),
                  .held = std::move(held),
                  .held_bytes = held_bytes};
  const std::uint64_t high = from.resume_from ? from.resume_from->response_high : context_.env().random();
  const std::uint64_t low = from.resume_from ? from.resume_from->response_low : context_.env().random();
  const auto begin =
      first_event_id(*r.model, r.asked, services_->eviction_defaults, high, low, from.spec.created_seconds);
  r.head = {.from = r.asked.from,
            .id = api::response_id(r.asked.from, high, low),
            .created_seconds = from.spec.created_seconds,
            .model = r.model->name,
            .system_fingerprint = r.model->fingerprint,
            .shows_logprobs = r.asked.logprobs,
            .shows_ids = r.asked.shows_ids(),
            .tokens_as_ids = r.asked.tokens_as_ids,
            .fields = r.asked.response_fields,
            .is_list = r.asked.wants_list,
            .context_tokens_max = r.model->answers->context_max(),
            .prompt_tokens = static_cast<std::uint32_t>(prompt_tokens),
            .echoes = r.asked.echo,
            .top_logprobs = r.asked.top_logprobs,
            .prompt_logprobs = r.asked.prompt_logprobs};
  if (!r.asked.has_seed) r.asked.sampling.seed = begin.seed();
  if (r.asked.from == api::endpoint::native && r.asked.shows_field("generation_settings"))
    r.head.settings = std::make_shared<const api::json>(api::native_settings(r.asked));
  if (r.asked.shape) {
    r.writer = r.asked.shape->make_writer(r.head);
  } else {
    r.writer = std::make_unique<api::event_writer>(r.head, r.asked.include_usage, begin, from.resume_from);
  }
  if (r.asked.usage_in_all_events) r.writer->note_progress(r.head.prompt_tokens, 0);
  if (from.resume_from) {
    services_->probe->stream_resumed();
    context_.log(log_level::info, "a stream is resumed", {{"request", who.request_id}, {"response", r.head.id}});
  }
  return r;
}

/// Even if all slots are taken, a tenant may use its share of them, so that one tenant cannot keep another out.
std::optional<api::api_error> completions::room_for(std::size_t answers, tenant_id tenant) const {
  if (answers_.size() + answers <= services_->sessions_max) return std::nullopt;
  std::unordered_map<tenant_id, std::size_t> by_tenant{{tenant, answers}};
  for (const auto& [session, place] : answers_) {
    if (const auto r = requests_.find(place.first); r != requests_.end()) ++by_tenant[r->second.who.tenant];
  }
  if (!equal_share{services_->sessions_max, by_tenant.size()}.is_over(by_tenant.at(tenant))) return std::nullopt;
  return api::error_of({errc::queue_full, std::to_string(answers_.size()) + " answers are in progress, " +
                                              std::to_string(by_tenant.at(tenant) - answers) + " of them yours"});
}

std::optional<api::api_error> completions::open_sessions(request_state& r, parsed_request& from) {
  const auto& asked = r.asked;
  if (auto why = room_for(from.prompts.size() * asked.answers_per_prompt(), r.who.tenant)) return why;
  answer_terms spec = from.what.spec;
  auto partners = r.model->answers->partners_for(spec.draft.how, context_.self());
  if (!partners) return api::error_of(partners.error(), r.who.request_id);
  partners->place.affinity = hash_session_key(r.who.tenant, asked.session_key);
  const std::string field = asked.from == api::endpoint::chat ? "messages" : "prompt";
  for (auto& p : from.prompts) {
    r.prompt_tokens += static_cast<std::uint32_t>(p.tokens.size());
    if (repeats_prompt_ids(asked)) r.prompt_ids.push_back(p.tokens);
    if (p.text) r.prompt_texts.push_back(std::move(p.text));
    if (asked.scores_prompt()) r.reports.push_back(std::move(p.report));
    for (std::uint32_t i = 0; i < asked.answers_per_prompt(); ++i) {
      const std::size_t index = r.choices.size();
      if (from.what.resume_from && from.what.resume_from->choices[index].is_over &&
          !from.what.resume_from->wants_usage(asked.include_usage)) {
        r.writer->skip(static_cast<std::uint32_t>(index));
        r.choices.push_back({.over = true});
        continue;
      }
      if (index < asked.resume_texts.size()) spec.known_text = asked.resume_texts[index];
      if (from.what.resume_from) spec.numerics = numerics_id(from.what.resume_from->choices[index].numerics);
      spec.session = {context_.env().random() | 1};
      spec.sampling.seed = asked.sampling.seed + i;
      spec.prompt_logprobs = i == 0 ? asked.scores_prompt() : std::nullopt;  // all answers share it
      auto span = begin_span(r, spec);
      spec.span = span.context();
      auto work = r.model->answers->make(spec, p.tokens, from.rules, p.turns, field);
      if (!work) return api::error_of(work.error(), r.who.request_id);
      answers_[spec.session] = {r.who.exchange, index};
      r.choices.push_back({.session = spec.session,
                           .where = context_.spawn<session>("session " + std::to_string(spec.session.value),
                                                            {1024, 1024}, std::move(*work), *partners),
                           .text = p.echo,
                           .thoughts = p.thoughts,
                           .span = std::move(span)});
      if (from.rules && from.rules->tools) r.choices.back().reader.emplace(from.rules->tools);
    }
  }
  return std::nullopt;
}

std::vector<api::slot_report> completions::list_running(tenant_id tenant) const {
  std::vector<api::slot_report> out;
  for (const auto& [session, place] : answers_) {
    const auto at = requests_.find(place.first);
    if (at == requests_.end()) continue;
    const auto& c = at->second.choices[place.second];
    api::slot_report one{.task = place.first, .has_text = c.tokens_count > 0, .details = {}};
    if (at->second.who.tenant == tenant) {
      const auto& asked = at->second.asked;
      one.details = {.tokens_count = c.tokens_count,
                     .tokens_max = asked.tokens_max,
                     .temperature = asked.sampling.temperature,
                     .stream = asked.stream};
    }
    out.push_back(one);
  }
  return out;
}

/// Follows the semantic conventions for generative AI, as far as they name what is known here.
trace::open_span completions::begin_span(const request_state& r, const answer_terms& spec) const {
  const auto parent = r.who.span();
  if (!parent) return {};
  const auto& asked = r.asked;
  const std::string operation = asked.from == api::endpoint::chat ? "chat" : "text_completion";
  const auto kind = services_->placer ? trace::span_kind::client : trace::span_kind::internal;
  trace::open_span span(services_->tracer, context_.env(), parent, operation + " " + r.model->name, kind);
  span.set("gen_ai.operation.name", operation);
  span.set("gen_ai.provider.name", std::string("redline"));
  span.set("gen_ai.request.model", asked.model.empty() ? r.model->name : asked.model);
  span.set("gen_ai.response.model", r.model->name);
  span.set("gen_ai.response.id", r.head.id);
  span.set("redline.stream", asked.stream);
  if (asked.n > 1) span.set("gen_ai.request.choice.count", std::int64_t{asked.n});
  if (asked.tokens_max) span.set("gen_ai.request.max_tokens", std::int64_t{*asked.tokens_max});
  if (asked.has_seed) span.set("gen_ai.request.seed", static_cast<std::int64_t>(spec.sampling.seed));
  span.set("gen_ai.request.temperature", double{spec.sampling.temperature});
  span.set("gen_ai.request.top_p", double{spec.sampling.top_p});
  span.set("redline.method", std::string(name_of(spec.draft.how)));
  return span;
}

/// Records the answer's cost and result.
void completions::end_span(choice_state& c, const session_stats& stats, std::string_view finish) {
  if (!c.span) return;
  c.span.set("gen_ai.response.finish_reasons", std::vector<std::string>{std::string(finish)});
  c.span.set("gen_ai.usage.input_tokens", std::int64_t{stats.prompt_tokens});
  c.span.set("gen_ai.usage.output_tokens", std::int64_t{stats.completion_tokens});
  c.span.set("gen_ai.usage.cache_read.input_tokens", std::int64_t{stats.cached_tokens});
  c.span.set("redline.rounds", std::int64_t{stats.rounds});
  c.span.set("redline.passes", std::int64_t{stats.target_passes});
  c.span.set("redline.draft_passes", std::int64_t{stats.draft_passes});
  c.span.set("redline.rows", std::int64_t{stats.target_rows});
  c.span.set("redline.drafted", std::int64_t{stats.drafted});
  c.span.set("redline.accepted", std::int64_t{stats.accepted});
  c.span.set("redline.copied", std::int64_t{stats.copied_forced} + stats.copied_verified);
  c.span.set("redline.first_token_us", static_cast<std::int64_t>(stats.first_token_us));
  c.span.end();
}

std::optional<answer_terms> completions::expect(const caller& who, expected_answer request,
                                                actor::actor_ref<edit_session> starter) {
  if (const auto why = room_for(1, who.tenant)) {
    replies_.refuse(who, *why);
    return std::nullopt;
  }
  auto state = make_state(who, request, byte_budget::claim(services_->request_bytes, who.tenant));
  if (request.resume_from && request.resume_from->is_all(state.asked.include_usage)) {
    state.writer->skip(0);
    state.choices.push_back({.over = true});
    finish(requests_.emplace(who.exchange, std::move(state)).first);
    return std::nullopt;
  }
  answer_terms spec = std::move(request.spec);
  spec.session = {context_.env().random() | 1};
  spec.sampling.seed = state.asked.sampling.seed;
  if (request.resume_from) spec.numerics = numerics_id(request.resume_from->choices.front().numerics);
  state.starter = starter;
  auto span = begin_span(state, spec);
  spec.span = span.context();
  state.choices.push_back({.session = spec.session, .span = std::move(span)});
  answers_[spec.session] = {who.exchange, 0};
  requests_.emplace(who.exchange, std::move(state));
  return spec;
}

void completions::on(const answer_started& m) {
  const actor::actor_ref<session> where{m.where};
  const auto r = requests_.find(m.exchange);
  if (r == requests_.end()) return context_.tell(where, cancel_session{});  // the client has left
  r->second.choices.front().where = where;
}

// ---- from a session to the client ----------------------------------------------------------------------------------

std::pair<completions::requests::iterator, std::size_t> completions::find(session_id session) {
  const auto at = answers_.find(session);
  if (at == answers_.end()) return {requests_.end(), 0};
  return {requests_.find(at->second.first), at->second.second};
}

/// The sender writes for a client that has left, or for a previous gateway that has died.
void completions::end_unknown() { context_.tell(actor::actor_ref<session>{context_.sender()}, cancel_session{}); }

/// From here on the client sees that its request is in progress, however long the prompt takes.
void completions::on(const session_admitted& m) {
  const auto [at, index] = find(m.session);
  if (at == requests_.end()) return end_unknown();
  request_state& r = at->second;
  r.choices[index].admitted = true;
  note_numerics(r, index, m.numerics);
  if (!r.is_admitted()) return;
  if (!r.asked.stream) return replies_.hold_open(r.who);
  std::string events;
  for (std::size_t i = 0; i < r.choices.size(); ++i) {
    if (!r.choices[i].over) events += begin_choice(r, static_cast<std::uint32_t>(i));
  }
  stream(at, std::move(events));
}

void completions::on(const session_text& m) {
  const auto [at, index] = find(m.session);
  if (at == requests_.end()) return end_unknown();
  request_state& r = at->second;
  choice_state& c = r.choices[index];
  if (!m.prompt_logprobs.empty()) return hear_scores(at, index, m);
  if (!r.first_text) services_->probe->first_text(r.first_text.emplace(context_.now() - r.who.arrived));
  services_->probe->tokens_generated(m.tokens.size());
  const instant now = context_.now();
  if (c.last_text) services_->probe->next_tokens(m.tokens.size(), now - *c.last_text);
  c.last_text = now;
  if (r.asked.computes_only) return;
  note_numerics(r, index, m.numerics);
  std::vector<api::token_report> reports;
  if (reports_tokens(r.asked)) reports = report_tokens(*r.model, m);
  for (const auto& one : m.logprobs) c.logprobs_sum += static_cast<double>(one.logprob);
  c.tokens_count += static_cast<std::uint32_t>(m.tokens.size());
  r.tokens_count += static_cast<std::uint32_t>(m.tokens.size());
  const auto told = take_text(r, c, m);
  if (!r.asked.stream) {
    note_progress(r);
    tell(r, index, told, nullptr);
    r.answer_bytes += m.text.size() + report_bytes_min(r.asked, reports);
    c.tokens.insert(c.tokens.end(), std::make_move_iterator(reports.begin()), std::make_move_iterator(reports.end()));
    if (r.answer_bytes > services_->answer_bytes_max) {
      return fail(at, answer_too_large(r.answer_bytes, services_->answer_bytes_max), "the answer is too large");
    }
    if (const auto why = hold_more(r, m)) fail(at, *why, why->message);
    return;
  }
  const auto number = static_cast<std::uint32_t>(index);
  std::string events = begin_choice(r, number);
  if (r.asked.usage_in_all_events) r.writer->note_progress(r.prompt_tokens, r.tokens_count);
  if (m.trace) events += r.writer->trace(number, to_public(*m.trace));
  events += tell(r, index, told, reports_tokens(r.asked) ? &reports : nullptr);
  stream(at, std::move(events));
}

/// For an answer that is sent whole.
void completions::note_progress(request_state& r) {
  if (context_.now() < r.progress_told + between_signs_of_progress) return;
  r.progress_told = context_.now();
  replies_.note_progress(r.who);
}

/// Log-probabilities of the prompt's tokens arrive in order, starting with the second token.
void completions::hear_scores(requests::iterator at, std::size_t index, const session_text& m) {
  request_state& r = at->second;
  const std::size_t of = index / r.asked.answers_per_prompt();
  if (of >= r.reports.size()) return;
  auto& tokens = r.reports[of].tokens;
  const auto piece = [&r](token t) { return std::string(r.model->answers->tokenizer()->piece(t, true)); };
  const std::size_t first = std::max<std::size_t>(1, r.choices[index].scored_count);
  const std::size_t end = first + std::min(m.prompt_logprobs.size(), tokens.size() - std::min(first, tokens.size()));
  for (std::size_t i = first; i < end; ++i) {
    const auto& one = m.prompt_logprobs[i - first];
    tokens[i].has_logprob = true;
    tokens[i].chosen.logprob = one.logprob;
    for (const auto& t : one.top) tokens[i].top.push_back({piece(t.id), t.logprob, t.id});
  }
  r.choices[index].scored_count = end;
  if (!r.asked.stream) return note_progress(r);
  const auto number = static_cast<std::uint32_t>(index);
  note_numerics(r, index, m.numerics);
  std::string events = begin_choice(r, number);
  events += r.writer->echo(number, {}, r.reports[of], first, end);
  stream(at, std::move(events));
}

/// Reserves memory, in steps, for what a whole answer keeps of the text.
std::optional<api::api_error> completions::hold_more(request_state& r, const session_text& m) const {
  constexpr std::uint64_t step = 256U << 10;
  r.held_bytes += m.text.size();
  if (reports_tokens(r.asked)) r.held_bytes += m.tokens.size() * sizeof(api::token_report);
  for (const auto& one : m.logprobs) r.held_bytes += one.top.size() * sizeof(api::token_probability);
  if (r.held_bytes < r.held.bytes() + step) return std::nullopt;
  return services_->hold(r.held, r.held_bytes);
}

/// Splits the text into parts and counts its reasoning tokens.
completions::parts completions::take_text(const request_state& r, choice_state& c, const session_text& m) {
  const bool thought_before = c.thoughts.is_thinking();
  auto told = tell_thoughts(c.thoughts, c.reader ? c.reader->feed(m.text) : parts{{part_kind::text, m.text}});
  const bool has_thoughts =
      std::any_of(told.begin(), told.end(), [](auto& p) { return p.what == part_kind::reasoning; });
  if (!thought_before && !c.thoughts.is_thinking() && !has_thoughts) return told;
  auto end = m.tokens.end();
  if (!c.thoughts.is_thinking()) {
    const auto close = r.model->answers->tokenizer()->vocab().find(c.thoughts.closing_tag());
    if (const auto at = std::find(m.tokens.begin(), m.tokens.end(), close.value_or(-1)); at != end) end = at + 1;
  }
  c.thought_tokens += static_cast<std::uint32_t>(end - m.tokens.begin());
  return told;
}

/// Returns what was held back until the answer ended.
completions::parts completions::take_rest(choice_state& c) {
  auto told = tell_thoughts(c.thoughts, c.reader ? c.reader->finish() : parts{});
  add_thoughts(c.thoughts.finish(), told);
  return told;
}

std::string completions::tell(request_state& r, std::size_t index, const parts& told,
                              const std::vector<api::token_report>* tokens) {
  choice_state& c = r.choices[index];
  const auto number = static_cast<std::uint32_t>(index);
  const bool is_legacy = r.asked.tools && r.asked.tools->is_legacy;
  const bool streams = r.asked.stream;
  std::string events;
  // The tokens go with the first part of their text. Tokens of calls or of text that is held back go alone.
  if (streams && tokens != nullptr && (told.empty() || told.front().what > part_kind::reasoning))
    events += r.writer->delta(number, {}, std::exchange(tokens, nullptr), {});
  for (const auto& part : told) {
    const auto call_number = static_cast<std::uint32_t>(c.calls.size() - 1);
    switch (part.what) {
      case part_kind::text:
        if (!streams) c.text += part.text;
        if (streams) events += r.writer->delta(number, part.text, std::exchange(tokens, nullptr), {});
        break;
      case part_kind::reasoning:
        if (!streams) c.reasoning += part.text;
        if (streams) events += r.writer->delta(number, {}, std::exchange(tokens, nullptr), part.text);
        break;
      case part_kind::call: {
        const auto seed = fnv1a().add(r.head.id).add(std::to_string(index)).value();
        const bool has_short_ids = r.model->prompts->tools().format()->has_short_ids;
        c.calls.push_back({tools::make_call_id(seed, call_number + 1, has_short_ids), part.text, {}});
        if (streams) events += r.writer->call(number, call_number + 1, c.calls.back(), is_legacy);
        break;
      }
      case part_kind::arguments:
        if (!streams) c.calls.back().arguments += part.text;
        if (streams) events += r.writer->arguments(number, call_number, part.text, is_legacy);
        break;
      case part_kind::call_end:
        break;
    }
  }
  return events;
}

/// A pool's worker reports its numerics; otherwise the model's own apply.
void completions::note_numerics(request_state& r, std::size_t index, numerics_id numerics) {
  if (numerics) r.head.system_fingerprint = make_fingerprint(r.model->digest, numerics);
  r.writer->note_numerics(static_cast<std::uint32_t>(index), (numerics ? numerics : r.model->numerics).value,
                          r.head.system_fingerprint);
}

/// The choice's first events; empty if they were already sent.
std::string completions::begin_choice(request_state& r, std::uint32_t number) {
  choice_state& c = r.choices[number];
  const std::size_t prompt = number / r.asked.answers_per_prompt();
  if (std::exchange(c.begun, true)) return {};
  std::string events = r.writer->first(
      number, prompt < r.prompt_ids.size() ? std::span<const token>(r.prompt_ids[prompt]) : std::span<const token>{});
  // The echoed prompt, if any. Its first token has no log-probability.
  const std::string text = std::exchange(c.text, {});
  if (prompt < r.reports.size()) return events + r.writer->echo(number, text, r.reports[prompt], 0, 1);
  return events + r.writer->delta(number, text, nullptr, {});
}

/// Sends events, unless the answer begins differently from what the client has.
bool completions::stream(requests::iterator at, std::string events, bool end) {
  request_state& r = at->second;
  // The stream begins even before there is an event: while an answer is made again, nothing else shows progress.
  if (!std::exchange(r.stream_begun, true)) replies_.begin_stream(r.who, r.writer->stream_type());
  if (r.writer->has_diverged()) {
    fail(at, diverged_answer(), "the resumed answer differs from its first part");
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
  if (m.reason != finish_reason::failed) services_->probe->answer_read(m.stats.completion_tokens);
  if (m.reason == finish_reason::failed) {
    const auto why = m.why_not.value_or(failure{errc::internal, "the session failed"});
    if (auto& span = r.choices[index].span) {
      span.set("error.type", std::string(name_of(why.code)));
      span.fail(why.describe());
      end_span(r.choices[index], m.stats, "error");
    }
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
  if (r.asked.computes_only) {
    c.finish = finish_reason::length;
    c.stats.completion_tokens = 0;
  }
  c.stop_text = m.stop_text;
  const auto rest = take_rest(c);
  end_span(c, c.stats, api::text_of(public_finish(r, c)));
  if (!r.asked.stream) {
    tell(r, index, rest, nullptr);
  } else {
    const auto number = static_cast<std::uint32_t>(index);
    std::string events = begin_choice(r, number);
    events += tell(r, index, rest, nullptr);
    auto end = to_choice(r, number);
    end.program = to_program(c.copied);
    events += r.writer->finish(end);
    if (!stream(at, std::move(events))) return;
  }
  if (r.is_over()) finish(at);
}

api::finish_reason completions::public_finish(const request_state& r, const choice_state& c) {
  return to_public(c.finish, !c.calls.empty(), r.asked.tools && r.asked.tools->is_legacy);
}

api::usage_report completions::sum_usage(const request_state& r) const {
  api::usage_report usage;
  for (std::size_t i = 0; i < r.choices.size(); ++i) {
    auto one = to_usage(r.choices[i].stats);
    one.reasoning_tokens = std::min(r.choices[i].thought_tokens, one.completion_tokens);
    if (i % r.asked.answers_per_prompt() != 0)
      one.prompt_tokens = one.cached_tokens = 0;  // the prompt counts once for its answers
    usage += one;
  }
  usage.ignored = r.asked.ignored;
  usage.edit_format = r.asked.edit_format;
  usage.eviction = name_of(r.asked.evicting(services_->eviction_defaults).policy);
  if (r.starter && r.asked.from == api::endpoint::completions) {
    // There is one answer, and its window, if it has one, has not moved when it begins.
    const auto& s = r.choices.front().stats;
    usage.kv = api::kv_report{s.prompt_exact, 0, s.prompt_tokens - std::min(s.prompt_exact, s.prompt_tokens)};
  }
  return usage;
}

/// Keeps the answers with the greatest mean log-probability of each prompt, the best one first.
void completions::keep_best(request_state& r) const {
  const std::uint32_t made = r.asked.answers_per_prompt();
  if (made == r.asked.n) return;
  const auto mean = [](const choice_state& c) { return c.logprobs_sum / std::max<double>(1, c.tokens_count); };
  std::vector<choice_state> kept;
  for (auto first = r.choices.begin(); first != r.choices.end(); first += made) {
    std::stable_sort(first, first + made, [&](const auto& x, const auto& y) { return mean(x) > mean(y); });
    std::move(first, first + r.asked.n, std::back_inserter(kept));
  }
  r.choices = std::move(kept);
}

/// Moves the texts out of the choice.
api::choice completions::to_choice(request_state& r, std::uint32_t number) {
  choice_state& c = r.choices[number];
  api::choice out{
      .index = number, .text = std::move(c.text), .finish = public_finish(r, c), .tokens = {}, .program = {}};
  out.calls = std::move(c.calls);
  out.is_legacy = r.asked.tools && r.asked.tools->is_legacy;
  out.reasoning = std::move(c.reasoning);
  out.stop_text = c.stop_text;
  out.cost = to_usage(c.stats);
  out.cost.ignored = r.asked.ignored;
  const auto prompt = number / r.asked.n;
  if (prompt < r.prompt_ids.size()) out.prompt = r.prompt_ids[prompt];
  if (prompt < r.prompt_texts.size()) out.prompt_text = r.prompt_texts[prompt];
  if (r.asked.stream && out.prompt_text && out.prompt_text->size() > streamed_prompt_bytes_max) out.prompt_text = {};
  if (prompt < r.reports.size()) out.read = &r.reports[prompt];
  return out;
}

void completions::finish(requests::iterator at) {
  request_state& r = at->second;
  const auto usage = sum_usage(r);
  std::vector<log_field> cost{{"prompt_tokens", usage.prompt_tokens},
                              {"cached_tokens", usage.cached_tokens},
                              {"completion_tokens", usage.completion_tokens},
                              {"target_passes", usage.target_passes},
                              {"drafted", usage.drafted},
                              {"accepted", usage.accepted},
                              {"finish", std::string(api::text_of(public_finish(r, r.choices.front())))}};
  if (r.first_text) cost.emplace_back("first_text_ms", r.first_text->count() / 1000);
  if (r.asked.stream) {
    stream(at, r.writer->end(usage), true);
    replies_.note_served(r.who, 200, std::move(cost));
  } else {
    keep_best(r);
    std::vector<api::choice> choices;
    for (std::size_t i = 0; i < r.choices.size(); ++i) {
      choices.push_back(to_choice(r, static_cast<std::uint32_t>(i)));
      auto& c = r.choices[i];
      choices.back().program = to_program(c.copied);
      if (reports_tokens(r.asked)) choices.back().tokens = std::move(c.tokens);
    }
    if (const auto why = r.writer->refusal(choices)) return fail(at, *why, why->message);
    respond_whole(r, std::move(choices), usage, std::move(cost));
  }
  note_end(r, r.choices.front().finish == finish_reason::length ? request_end::length : request_end::stop);
  services_->probe->prompt_read(usage.prompt_tokens);
  requests_.erase(at);
}

/// A long answer is written on another thread, because log-probabilities take megabytes.
void completions::respond_whole(request_state& r, std::vector<api::choice> choices, const api::usage_report& usage,
                                std::vector<log_field> cost) {
  const auto millis = (context_.now() - r.who.arrived).count() / 1000;
  const header_list more{{"openai-processing-ms", std::to_string(millis)}};
  std::uint64_t bytes = r.answer_bytes;
  for (const auto& report : r.reports) bytes += report.tokens.size() * sizeof(api::token_report);
  for (const auto& one : choices)
    bytes += one.prompt.size() * sizeof(token) + (one.prompt_text ? one.prompt_text->size() : 0);
  if (bytes <= small_answer_bytes) {
    return replies_.respond_noting(r.who, 200, r.writer->whole(choices, usage), more, std::move(cost));
  }
  struct answer {
    std::unique_ptr<api::answer_writer> writer;
    std::vector<api::prompt_report> reports;  // the choices point to these
    std::vector<api::choice> choices;
    api::usage_report usage;
  };
  const auto all =
      std::make_shared<const answer>(answer{std::move(r.writer), std::move(r.reports), std::move(choices), usage});
  const auto write = [all]() -> api::checked<std::string> { return all->writer->whole(all->choices, all->usage); };
  reader_.run(
      r.who, std::min<std::uint64_t>(bytes, sizes::http_body_bytes_max), write,
      [this, who = r.who, more, cost = std::move(cost)](std::string body) {
        replies_.respond_noting(who, 200, std::move(body), more, cost);
      },
      std::move(r.held));
}

// ---- what goes wrong -----------------------------------------------------------------------------------------------

void completions::note_end(const request_state& r, request_end how) {
  services_->probe->request_finished(how, context_.now() - r.who.arrived);
}

void completions::fail(requests::iterator at, const api::api_error& why, std::string_view for_log) {
  const request_state& r = at->second;
  if (why.status >= 500) {
    context_.log(log_level::warning, "request failed: " + std::string(for_log), {{"request", r.who.request_id}});
  }
  if (r.stream_begun) {
    replies_.note_refusal(r.who, why);
    replies_.stream(r.who, r.writer->error(why), true);
  } else {
    replies_.refuse(r.who, why);
  }
  note_end(r, request_end::error);
  drop(at);
}

void completions::drop(requests::iterator at) {
  for (const auto& c : at->second.choices) {
    answers_.erase(c.session);
    if (!c.over && c.where) context_.tell(c.where, cancel_session{});
  }
  if (at->second.starter) context_.tell(at->second.starter, withdraw_call{at->first});
  requests_.erase(at);
}

void completions::refuse(std::uint64_t exchange, const refusal& why) {
  const auto at = requests_.find(exchange);
  if (at == requests_.end()) return;
  replies_.refuse(at->second.who, api::error_of(why, at->second.who.request_id));
  answers_.erase(at->second.choices.front().session);
  requests_.erase(at);
}

void completions::starter_is_gone(actor::actor_ref<edit_session> starter, const api::api_error& why) {
  for (auto at = requests_.begin(); at != requests_.end();) {
    const auto& r = at->second;
    if (r.starter != starter || r.choices.front().where) {
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
  context_.log(log_level::info, "the client disconnected", {{"request", at->second.who.request_id}});
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
