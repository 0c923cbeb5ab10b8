#include "actors/http/gateway.hpp"

#include <algorithm>
#include <charconv>

#include "actors/serving/draft_model.hpp"
#include "actors/serving/verify_scheduler.hpp"
#include "transport/http_message.hpp"

namespace redline::actors {
namespace {

constexpr microseconds tick{500'000};
constexpr microseconds scheduler_silence_max{5'000'000};
constexpr std::size_t request_id_bytes_max = 128;

const std::string* find_header(const header_list& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (transport::equal_ignoring_case(key, name)) return &value;
  }
  return nullptr;
}

std::string hex(std::uint64_t n) {
  char buffer[17];
  std::snprintf(buffer, sizeof buffer, "%016llx", static_cast<unsigned long long>(n));
  return buffer;
}

/// A client's own id is echoed when it is harmless in a header and a log.
std::string request_id_of(const http_arrived& m, environment& env) {
  const std::string* given = find_header(m.headers, "x-request-id");
  if (given != nullptr && !given->empty() && given->size() <= request_id_bytes_max &&
      std::all_of(given->begin(), given->end(), [](char c) { return c > 0x20 && c < 0x7f; })) {
    return *given;
  }
  return "req-" + hex(env.random());
}

api::usage_report usage_of(const session_stats& s) {
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

std::optional<api::program_report> program_of(const copy_report& copied) {
  if (copied.program.empty()) return std::nullopt;
  api::program_report out{.program = copied.program, .spans = {}};
  for (const auto& s : copied.spans) {
    out.spans.push_back({s.file, s.of == copy::unit::lines ? "lines" : "tokens", s.first, s.last,
                         s.forced ? "forced" : "verified", name_of(s.reason), s.tokens});
  }
  return out;
}

api::finish_reason public_reason(finish_reason r) {
  return r == finish_reason::length ? api::finish_reason::length : api::finish_reason::stop;
}

}  // namespace

gateway::gateway(actor::actor_context& context, std::shared_ptr<const gateway_services> services)
    : actor_of(context), services_(std::move(services)), created_seconds_(context.env().unix_seconds()) {}

void gateway::on_start() { on(gateway_tick{}); }

void gateway::on(const gateway_tick&) {
  context().after(tick, gateway_tick{});
  for (const auto reporter : services_->reporters) context().send(reporter, report_status{});
  if (draining_ && requests_.empty() && live_waits_.empty() && !std::exchange(drained_, true) && services_->on_drained)
    services_->on_drained();
}

void gateway::on(const scheduler_report& m) {
  scheduler_ = m;
  scheduler_heard_ = context().now();
}

void gateway::on(const draft_report& m) { drafters_[context().sender()] = m; }

void gateway::on(const drain_gateway&) {
  draining_ = true;
  context().send(services_->http, http_stop_accepting{});
}

void gateway::on(const cancel_everything&) {
  std::vector<std::uint64_t> all;
  for (const auto& [exchange, r] : requests_) all.push_back(exchange);
  for (const auto exchange : all) fail_request(exchange, {errc::draining, "the server is shutting down"}, 1000);
}

void gateway::on(const actor::peer_state& m) {
  if (!m.reachable && m.process == actor::process_of(services_->scheduler)) scheduler_.reset();
}

// A report that could not be asked for says the same as none: readiness follows from the last one heard. A session that
// cannot be reached has died, and actor_down tells.
void gateway::on(const actor::undeliverable& m) {
  if (m.to == services_->scheduler) scheduler_.reset();
}

void gateway::on(const actor::actor_down& m) {
  for (const auto& [session, live] : live_) {
    if (live.where.where != m.who) continue;
    on(edit_session_over{session});
    return;
  }
  for (const auto& [exchange, r] : requests_) {
    for (const auto& a : r.answers) {
      if (a.where.where != m.who) continue;
      // It cannot give back what it borrowed.
      const auto live = r.live ? live_.find(*r.live) : live_.end();
      if (live != live_.end()) context().tell(live->second.where, edit_withdraw{exchange});
      fail_request(exchange, {errc::session_lost, "the session of this answer died"}, 0);
      return;
    }
  }
}

// ---- routes --------------------------------------------------------------------------------------------------------

void gateway::on(const http_arrived& m) {
  arrived_to_ = std::max(arrived_to_, m.exchange);
  const bool gone = left_early_.erase(m.exchange) > 0;
  left_early_.erase(left_early_.begin(), left_early_.lower_bound(m.exchange));  // those never arrived
  if (gone) return;
  visit v{m, m.path, request_id_of(m, context().env()), tenant_id{0}};
  if (v.path.starts_with("/v1/")) v.path.erase(0, 3);
  const bool open_to_all = v.path == "/health" || v.path == "/healthz" || v.path == "/livez" || v.path == "/readyz";
  if (!services_->keys.empty() && !open_to_all && m.method != "OPTIONS") {
    std::optional<std::string_view> key;
    if (const auto* bearer = find_header(m.headers, "authorization")) key = bearer_key(*bearer);
    if (const auto* plain = find_header(m.headers, "x-api-key"); !key && plain != nullptr) key = *plain;
    const auto owner = key ? services_->keys.find(*key) : std::nullopt;
    if (!owner) {
      respond_error(m.exchange,
                    api::error_of({errc::unauthorized, key ? "this API key is not known" : "an API key is required"}),
                    v.request_id);
      return;
    }
    v.tenant = owner->tenant;
  }
  route(v);
}

void gateway::route(const visit& v) {
  struct entry {
    std::string_view method, path;
    void (gateway::*serve)(const visit&);
  };
  static constexpr entry table[] = {
      {"POST", "/tokenize", &gateway::serve_tokenize},
      {"POST", "/detokenize", &gateway::serve_detokenize},
      {"POST", "/apply-template", &gateway::serve_template},
      {"GET", "/models", &gateway::serve_models},
      {"GET", "/health", &gateway::serve_health},
      {"GET", "/healthz", &gateway::serve_health},
      {"GET", "/livez", &gateway::serve_health},
      {"GET", "/readyz", &gateway::serve_health},
      {"GET", "/metrics", &gateway::serve_metrics},
  };
  const auto& m = v.m;
  if (m.method == "POST" && v.path == "/chat/completions") return serve_generation(v, api::endpoint::chat);
  if (m.method == "POST" && v.path == "/completions") return serve_generation(v, api::endpoint::completions);
  if (m.method == "GET" && v.path.starts_with("/models/")) return serve_models(v);
  bool path_known = v.path == "/chat/completions" || v.path == "/completions";
  for (const auto& e : table) {
    if (v.path != e.path) continue;
    if (m.method == e.method || (m.method == "HEAD" && e.method == "GET")) return (this->*e.serve)(v);
    path_known = true;
  }
  // Without CORS headers a browser reads the refusal as "not for other origins", which is the default we want.
  if (m.method == "OPTIONS" && path_known) return respond(m.exchange, 204, {}, v.request_id);
  if (route_live(v)) return;
  if (v.path == "/embeddings") {
    return respond_error(m.exchange, api::not_supported("this server has no embedding model"), v.request_id);
  }
  respond_error(m.exchange,
                path_known ? api::method_not_allowed(m.method, m.path) : api::not_found("no such path: " + m.path),
                v.request_id);
}

std::optional<api::api_error> gateway::readiness() const {
  if (draining_) return api::error_of({errc::draining, "the server is shutting down"});
  if (!scheduler_ || !scheduler_->ready || context().now() - scheduler_heard_ > scheduler_silence_max) {
    return api::error_of({errc::not_ready, "the model is loading or out of reach"});
  }
  return std::nullopt;
}

void gateway::serve_health(const visit& v) {
  const auto why = v.path == "/livez" ? std::nullopt : readiness();
  if (why)
    respond_error(v.m.exchange, *why, v.request_id);
  else
    respond(v.m.exchange, 200, api::health_body(), v.request_id);
}

bool gateway::knows_model(const std::string& name) const {
  return services_->accept_any_model || name.empty() || name == services_->model_name ||
         std::find(services_->aliases.begin(), services_->aliases.end(), name) != services_->aliases.end();
}

void gateway::serve_models(const visit& v) {
  api::model_card card{
      .id = services_->model_name, .created_seconds = created_seconds_, .context_tokens_max = services_->context_max};
  if (v.path == "/models") return respond(v.m.exchange, 200, api::model_list_body(std::span(&card, 1)), v.request_id);
  const std::string name = v.path.substr(std::string_view("/models/").size());
  if (name.empty() || !knows_model(name)) {
    return respond_error(v.m.exchange, api::error_of({errc::model_not_found, "no model '" + name + "'"}), v.request_id);
  }
  respond(v.m.exchange, 200, api::model_body(card), v.request_id);
}

result<std::string> gateway::render(const api::json& messages, bool add_generation_prompt) const {
  jinja::chat_input input{
      .messages = messages, .add_generation_prompt = add_generation_prompt, .now = context().env().unix_seconds()};
  const auto& vocab = services_->tokenizer->vocab();
  if (vocab.bos()) input.bos_token = std::string(vocab.text(*vocab.bos()));
  if (vocab.eos()) input.eos_token = std::string(vocab.text(*vocab.eos()));
  return services_->chat.render(input);
}

void gateway::serve_tokenize(const visit& v) {
  const auto wish = api::parse_tokenize_request(v.m.body);
  if (!wish) return respond_error(v.m.exchange, wish.error(), v.request_id);
  std::string input = wish->text.value_or("");
  if (!wish->text) {
    const auto rendered = render(wish->messages, wish->add_generation_prompt);
    if (!rendered) return respond_error(v.m.exchange, api::error_of(rendered.error(), v.request_id), v.request_id);
    input = *rendered;
  }
  const auto tokens =
      services_->tokenizer->encode(input, {.parse_special = wish->parse_special, .add_bos_eos = wish->add_special});
  std::vector<std::string> pieces;
  if (wish->with_pieces) {
    for (const token t : tokens) pieces.emplace_back(services_->tokenizer->piece(t, true));
  }
  respond(v.m.exchange, 200, api::tokenize_body(*wish, tokens, pieces, services_->context_max), v.request_id);
}

void gateway::serve_detokenize(const visit& v) {
  const auto wish = api::parse_detokenize_request(v.m.body);
  if (!wish) return respond_error(v.m.exchange, wish.error(), v.request_id);
  const auto text = services_->tokenizer->decode(wish->tokens, {.render_special = true});
  if (!text) return respond_error(v.m.exchange, api::bad_field("tokens", text.error().context), v.request_id);
  respond(v.m.exchange, 200, api::detokenize_body(*text), v.request_id);
}

void gateway::serve_template(const visit& v) {
  const auto wish = api::parse_template_request(v.m.body);
  if (!wish) return respond_error(v.m.exchange, wish.error(), v.request_id);
  const auto prompt = render(wish->messages, wish->add_generation_prompt);
  if (!prompt) return respond_error(v.m.exchange, api::error_of(prompt.error(), v.request_id), v.request_id);
  respond(v.m.exchange, 200, api::template_body(*prompt), v.request_id);
}

/// By source, of answers that ended; what the client left is not told.
void gateway::count_drafts(const session_stats& s) {
  auto& m = *services_->metrics;
  for (const auto from : draft::all_sources) {
    m.counter_of("spec_drafted_total", "Draft tokens verified", {{"source", name_of(from)}}).add(s.of(from).drafted);
    m.counter_of("spec_accepted_total", "Draft tokens accepted", {{"source", name_of(from)}}).add(s.of(from).accepted);
  }
  m.counter_of("spec_drafted_total", "Draft tokens verified", {{"source", "copy"}})
      .add(s.copied_verified + s.copy_refused);
  m.counter_of("spec_accepted_total", "Draft tokens accepted", {{"source", "copy"}}).add(s.copied_verified);
  m.counter_of("copied_forced_total", "Tokens of spans copied without asking the model").add(s.copied_forced);
}

void gateway::serve_metrics(const visit& v) {
  auto& m = *services_->metrics;
  count_drafts({});  // so that every source is listed from the start
  m.gauge_of("ready", "1 when requests are taken").set(readiness() ? 0 : 1);
  m.gauge_of("live_sessions", "Edit sessions at this gateway").set(static_cast<double>(live_.size()));
  m.gauge_of("answers_running", "Answers in work at this gateway")
      .set(static_cast<double>(answers_of_sessions_.size()));
  if (scheduler_) {
    const auto& s = *scheduler_;
    const auto gauge = [&](std::string_view name, std::string_view help, double value) {
      m.gauge_of(name, help).set(value);
    };
    // Counters of another actor, repeated as it told them.
    const auto total = [&](std::string_view name, std::string_view help, double value) {
      auto& c = m.counter_of(name, help);
      c.add(value - c.value());
    };
    gauge("requests_running", "Sequences that the scheduler computes in turn", s.running_count);
    gauge("requests_waiting", "Sequences that wait for a place", s.waiting_count);
    gauge("kv_pages_total", "KV pages of the target model", s.pages_count);
    gauge("kv_pages_held", "KV pages in use", s.pages_held);
    gauge("cost_model_error_ratio", "Mean of |predicted - measured| / measured step time", s.cost_error_ratio);
    total("steps_total", "Forward passes of the target model", static_cast<double>(s.batches_total));
    total("rows_total", "Rows computed by the target model", static_cast<double>(s.rows_total));
    total("step_seconds_total", "Time spent in forward passes of the target model",
          static_cast<double>(s.forward_us_total) / 1e6);
    total("cached_prompt_tokens_total", "Tokens of new prompts that another sequence had computed",
          static_cast<double>(s.cached_total));
    total("preempted_total", "Sequences that lost their KV to others", static_cast<double>(s.preempted_total));
    total("refused_total", "Sequences refused because the queue was full", static_cast<double>(s.refused_total));
  }
  respond(v.m.exchange, 200, m.text(), v.request_id, {}, std::string(metrics_registry::content_type));
}

// ---- answers -------------------------------------------------------------------------------------------------------

api::answer<std::vector<std::vector<token>>> gateway::prompts_of(const api::generation_request& wish) const {
  std::vector<std::vector<token>> prompts;
  if (wish.from == api::endpoint::chat) {
    const auto rendered = render(wish.messages, true);
    if (!rendered) {
      if (rendered.error().code == errc::invalid_argument) return api::bad_field("messages", rendered.error().context);
      return api::error_of(rendered.error());
    }
    // The template writes BOS itself when it wants one.
    prompts.push_back(services_->tokenizer->encode(*rendered, {.parse_special = true}));
    return prompts;
  }
  for (const auto& p : wish.prompts) {
    if (const auto* text = std::get_if<std::string>(&p)) {
      prompts.push_back(services_->tokenizer->encode(*text, {.parse_special = true, .add_bos_eos = true}));
    } else {
      prompts.push_back(std::get<std::vector<token>>(p));
    }
  }
  return prompts;
}

std::vector<token_range> gateway::turns_of(const api::json& messages, std::span<const token> prompt) const {
  const auto text = render(messages, true);
  if (!text) return {};
  return older_turns(messages, *text, prompt, *services_->tokenizer,
                     [&](const api::json& first) { return render(first, false); });
}

api::answer<std::vector<token>> gateway::prediction_of(const api::generation_request& wish) const {
  if (!wish.prediction) return std::vector<token>{};
  auto tokens = services_->tokenizer->encode(*wish.prediction);
  if (tokens.size() <= services_->context_max) return tokens;
  return api::bad_field("prediction.content",
                        "'prediction.content' has " + std::to_string(tokens.size()) +
                            " tokens, more than the context of " + std::to_string(services_->context_max) + ".",
                        "context_length_exceeded");
}

/// The grammar of the request's answers; null for free text.
api::answer<std::shared_ptr<const guide_rules>> gateway::rules_of(const api::generation_request& wish) const {
  if (!wish.copy && !wish.schema) return std::shared_ptr<const guide_rules>{};
  const std::string field = wish.copy ? "redline.copy" : "response_format";
  if (!services_->token_trie)
    return api::bad_field(field, "This model's vocabulary cannot spell what '" + field + "' needs.");
  if (wish.schema) {
    auto rules = json_rules(services_->token_trie, *wish.schema);
    if (rules) return std::move(*rules);
    return api::bad_field("response_format.json_schema.schema", rules.error().context, "invalid_grammar");
  }
  copy_options options{.trust = *copy_trust_of(wish.copy->trust),
                       .line_spans = wish.copy->line_spans,
                       .token_spans = wish.copy->token_spans,
                       .anchors = wish.copy->anchors};
  if (wish.copy->confidence_min) options.confidence_min = *wish.copy->confidence_min;
  auto rules = copy_rules(services_->token_trie, wish.copy->files, options);
  if (rules) return std::move(*rules);
  return api::bad_field("redline.files", rules.error().context);
}

void gateway::serve_generation(const visit& v, api::endpoint from) {
  auto parsed =
      from == api::endpoint::chat ? api::parse_chat_request(v.m.body) : api::parse_completion_request(v.m.body);
  if (!parsed) return respond_error(v.m.exchange, parsed.error(), v.request_id);
  if (!knows_model(parsed->model)) {
    return respond_error(v.m.exchange, api::error_of({errc::model_not_found, "no model '" + parsed->model + "'"}),
                         v.request_id);
  }
  if (const auto why = readiness()) return respond_error(v.m.exchange, *why, v.request_id);
  const auto prompts = prompts_of(*parsed);
  if (!prompts) return respond_error(v.m.exchange, prompts.error(), v.request_id);
  const auto prediction = prediction_of(*parsed);
  if (!prediction) return respond_error(v.m.exchange, prediction.error(), v.request_id);

  request_state r;
  r.wish = std::move(*parsed);
  r.began = context().now();
  if (const auto why = begin_request(v.who(), std::move(r), *prompts, *prediction)) {
    respond_error(v.m.exchange, *why, v.request_id);
  }
}

std::optional<api::api_error> gateway::begin_request(const caller& who, request_state r,
                                                     const std::vector<std::vector<token>>& prompts,
                                                     const std::vector<token>& prediction,
                                                     const std::optional<borrowed_sequence>& borrowed) {
  const auto from = r.wish.from;
  r.request_id = who.request_id;
  r.head = {.from = from,
            .id = api::response_id(from, context().env().random(), context().env().random()),
            .created_seconds = context().env().unix_seconds(),
            .model = services_->model_name,
            .system_fingerprint = services_->fingerprint};
  if (r.wish.stream) r.events = std::make_unique<api::event_writer>(r.head, r.wish.include_usage);
  if (!r.wish.has_seed) r.wish.sampling.seed = context().env().random();
  const auto rules = rules_of(r.wish);
  if (!rules) return rules.error();
  if (auto why = open_sessions(who, r, prompts, prediction, *rules, borrowed)) {
    for (auto& a : r.answers) {
      answers_of_sessions_.erase(a.session);
      context().tell(a.where, cancel_session{});
    }
    return why;
  }
  requests_.emplace(who.exchange, std::move(r));
  return std::nullopt;
}

std::optional<api::api_error> gateway::open_sessions(const caller& who, request_state& r,
                                                     const std::vector<std::vector<token>>& prompts,
                                                     const std::vector<token>& prediction,
                                                     const std::shared_ptr<const guide_rules>& rules,
                                                     const std::optional<borrowed_sequence>& borrowed) {
  const auto& wish = r.wish;
  const std::size_t wanted = prompts.size() * wish.n;
  if (answers_of_sessions_.size() + wanted > services_->sessions_max) {
    return api::error_of({errc::queue_full, std::to_string(answers_of_sessions_.size()) + " answers are in work"});
  }
  const auto options = wish.drafting(services_->draft_defaults);
  auto partners = services_->partners_for(options.how, context().self());
  if (!partners) return api::bad_field("redline.speculation.method", partners.error().context);
  partners->borrowed = borrowed;

  // A window is the edit session's own.
  const auto eviction = borrowed ? kv::eviction_options{} : wish.evicting(services_->eviction_defaults);
  const bool forgets_turns = eviction.policy != kv::eviction_policy::off && wish.from == api::endpoint::chat;
  for (const auto& prompt : prompts) {
    const auto turns = forgets_turns ? std::optional(turns_of(wish.messages, prompt)) : std::nullopt;
    for (std::uint32_t i = 0; i < wish.n; ++i) {
      generation_spec g;
      g.session = {context().env().random() | 1};
      g.tenant = who.tenant;
      g.prompt = prompt;
      g.context_max = services_->context_max;
      g.tokens_max = wish.tokens_max.value_or(wish.from == api::endpoint::chat ? services_->context_max : 16);
      g.eviction = eviction;
      g.turns = turns;
      g.stops = wish.stop;
      g.ignore_end = wish.ignore_eos;
      g.sampling = wish.sampling;
      g.sampling.seed = wish.sampling.seed + i;
      if (wish.tokens_min > 0) {
        for (token t = 0; t < static_cast<token>(services_->tokenizer->size()); ++t) {
          if (services_->tokenizer->is_end_of_generation(t)) g.sampling.banned_early.push_back(t);
        }
        g.sampling.banned_before = static_cast<std::uint32_t>(prompt.size()) + wish.tokens_min;
      }
      g.draft = options;
      g.prediction = prediction;
      g.rules = rules;
      if (wish.logprobs) g.logprobs = wish.top_logprobs;
      const session_id id = g.session;
      auto work = token_log::make(std::move(g), services_->tokenizer);
      if (!work) {
        auto why = api::error_of(work.error(), who.request_id);
        if (why.param.empty()) why.param = wish.from == api::endpoint::chat ? "messages" : "prompt";
        return why;
      }
      answer_state a{.session = id};
      answers_of_sessions_[id] = {who.exchange, r.answers.size()};
      a.where =
          context().spawn<session>("session " + std::to_string(id.value), {1024, 1024}, std::move(*work), *partners);
      r.answers.push_back(std::move(a));
    }
  }
  return std::nullopt;
}

std::pair<std::uint64_t, std::size_t> gateway::whose(session_id session) const {
  const auto it = answers_of_sessions_.find(session);
  return it == answers_of_sessions_.end() ? std::pair<std::uint64_t, std::size_t>{0, 0} : it->second;
}

void gateway::begin_stream(std::uint64_t exchange, request_state& r) {
  if (std::exchange(r.streaming_begun, true)) return;
  http_stream head{.exchange = exchange, .begin = true};
  head.headers = {{"Content-Type", "text/event-stream; charset=utf-8"},
                  {"Cache-Control", "no-cache"},
                  {"X-Accel-Buffering", "no"},
                  {"x-request-id", r.request_id}};
  context().send(services_->http, head);
}

void gateway::stream(std::uint64_t exchange, std::string data, bool end) {
  context().send(services_->http, http_stream{.exchange = exchange, .data = std::move(data), .end = end});
}

void gateway::on(const session_text& m) {
  const auto [exchange, index] = whose(m.session);
  const auto it = requests_.find(exchange);
  if (it == requests_.end()) return;
  request_state& r = it->second;
  answer_state& a = r.answers[index];
  if (!std::exchange(r.first_text_seen, true)) {
    services_->metrics
        ->histogram_of("time_to_first_token_seconds", "From a request's arrival to its first text",
                       latency_buckets_seconds)
        .observe(static_cast<double>((context().now() - r.began).count()) / 1e6);
  }
  services_->metrics->counter_of("generation_tokens_total", "Tokens generated")
      .add(static_cast<double>(m.tokens.size()));
  std::vector<api::token_report> reports;
  for (std::size_t i = 0; i < m.logprobs.size() && i < m.tokens.size(); ++i) {
    api::token_report report{
        .chosen = {std::string(services_->tokenizer->piece(m.tokens[i], true)), m.logprobs[i].logprob}};
    for (const auto& t : m.logprobs[i].top) {
      report.top.push_back({std::string(services_->tokenizer->piece(t.id, true)), t.logprob});
    }
    reports.push_back(std::move(report));
  }
  if (!r.wish.stream) {
    a.text += m.text;
    a.tokens.insert(a.tokens.end(), std::make_move_iterator(reports.begin()), std::make_move_iterator(reports.end()));
    return;
  }
  begin_stream(exchange, r);
  std::string events;
  const auto number = static_cast<std::uint32_t>(index);
  if (!std::exchange(a.begun, true)) events += r.events->first(number);
  if (!m.text.empty() || !reports.empty()) {
    events += r.events->delta(number, m.text, r.wish.logprobs ? &reports : nullptr);
  }
  if (!events.empty()) stream(exchange, std::move(events));
}

void gateway::on(const session_finished& m) {
  const auto [exchange, index] = whose(m.session);
  const auto it = requests_.find(exchange);
  if (it == requests_.end()) return;
  count_drafts(m.stats);
  if (m.reason == finish_reason::failed) {
    fail_request(exchange, m.why_not.value_or(failure{errc::internal, "the session failed"}), m.retry_after_ms);
    return;
  }
  request_state& r = it->second;
  answer_state& a = r.answers[index];
  a.over = true;
  a.finish = m.reason;
  a.stats = m.stats;
  a.copied = m.copied;
  answers_of_sessions_.erase(m.session);
  if (r.wish.stream) {
    begin_stream(exchange, r);
    const auto number = static_cast<std::uint32_t>(index);
    std::string events;
    const auto program = program_of(a.copied);
    if (!std::exchange(a.begun, true)) events += r.events->first(number);
    stream(exchange, events + r.events->finish(number, public_reason(m.reason), program ? &*program : nullptr));
  }
  complete_if_over(exchange);
}

void gateway::complete_if_over(std::uint64_t exchange) {
  const auto it = requests_.find(exchange);
  request_state& r = it->second;
  if (!std::all_of(r.answers.begin(), r.answers.end(), [](const answer_state& a) { return a.over; })) return;
  api::usage_report usage;
  for (std::size_t i = 0; i < r.answers.size(); ++i) {
    auto one = usage_of(r.answers[i].stats);
    if (i % r.wish.n != 0) one.prompt_tokens = one.cached_tokens = 0;  // one prompt, n answers
    usage += one;
  }
  usage.eviction = name_of(r.wish.evicting(services_->eviction_defaults).policy);
  if (r.live) {
    // There is one answer, and its window, should it have one, has not moved when it begins.
    const auto& s = r.answers.front().stats;
    usage.kv = api::kv_report{s.prompt_exact, 0, s.prompt_tokens - std::min(s.prompt_exact, s.prompt_tokens)};
  }
  if (r.wish.stream) {
    stream(exchange, r.events->usage(usage) + api::event_writer::done(), true);
  } else {
    std::vector<api::choice> choices;
    for (std::size_t i = 0; i < r.answers.size(); ++i) {
      auto& a = r.answers[i];
      choices.push_back(
          {.index = static_cast<std::uint32_t>(i), .text = std::move(a.text), .finish = public_reason(a.finish)});
      choices.back().program = program_of(a.copied);
      if (r.wish.logprobs) choices.back().tokens = std::move(a.tokens);
    }
    const auto millis = (context().now() - r.began).count() / 1000;
    respond(exchange, 200, api::completion_body(r.head, choices, usage), r.request_id,
            {{"openai-processing-ms", std::to_string(millis)}});
  }
  note_finished(r, r.answers.front().finish == finish_reason::length ? "length" : "stop");
  services_->metrics->counter_of("prompt_tokens_total", "Tokens of prompts").add(usage.prompt_tokens);
  context().log(log_level::info, "request " + r.request_id + ": " + std::to_string(usage.prompt_tokens) + " prompt, " +
                                     std::to_string(usage.completion_tokens) + " completion tokens, " +
                                     std::to_string(usage.target_passes) + " target passes, " +
                                     std::to_string(usage.accepted) + " of " + std::to_string(usage.drafted) +
                                     " drafted accepted, " +
                                     std::to_string((context().now() - r.began).count() / 1000) + " ms");
  requests_.erase(it);
}

void gateway::note_finished(const request_state& r, std::string_view reason) {
  services_->metrics->counter_of("requests_total", "Requests by outcome", {{"reason", reason}}).add();
  services_->metrics->histogram_of("request_seconds", "From a request's arrival to its end", latency_buckets_seconds)
      .observe(static_cast<double>((context().now() - r.began).count()) / 1e6);
}

void gateway::fail_request(std::uint64_t exchange, const failure& why, std::uint32_t retry_after_ms) {
  request_state& r = requests_.at(exchange);
  auto error = api::error_of(why, r.request_id);
  if (retry_after_ms > 0) error.retry_after_seconds = (retry_after_ms + 999) / 1000;
  context().log(log_level::warning, "request " + r.request_id + " failed: " + why.describe());
  if (r.streaming_begun)
    stream(exchange, api::error_event(error), true);
  else
    respond_error(exchange, error, r.request_id);
  note_finished(r, "error");
  drop_request(exchange, true);
}

void gateway::drop_request(std::uint64_t exchange, bool cancel_sessions) {
  const auto it = requests_.find(exchange);
  if (it == requests_.end()) return;
  for (auto& a : it->second.answers) {
    answers_of_sessions_.erase(a.session);
    if (!a.over && cancel_sessions) context().tell(a.where, cancel_session{});
  }
  requests_.erase(it);
}

void gateway::on(const http_closed& m) {
  if (const auto wait = live_waits_.find(m.exchange); wait != live_waits_.end()) {
    const auto live = live_.find(wait->second.session);
    if (live != live_.end()) context().tell(live->second.where, edit_withdraw{m.exchange});
    live_waits_.erase(wait);
    return;
  }
  const auto it = requests_.find(m.exchange);
  if (it == requests_.end()) {
    // Control messages overtake: the request itself may still lie in the mailbox. Exchanges are numbered in order.
    if (m.exchange > arrived_to_) left_early_.insert(m.exchange);
    return;
  }
  context().log(log_level::info, "request " + it->second.request_id + ": the client left");
  note_finished(it->second, "abort");
  drop_request(m.exchange, true);
}

void gateway::on(const http_flow& m) {
  const auto it = requests_.find(m.exchange);
  if (it == requests_.end()) return;
  for (auto& a : it->second.answers) {
    if (!a.over) context().tell(a.where, pause_session{m.paused});
  }
}

void gateway::respond(std::uint64_t exchange, unsigned status, std::string body, const std::string& request_id,
                      header_list more, std::string content_type) {
  http_respond answer{.exchange = exchange, .status = status, .headers = std::move(more), .body = std::move(body)};
  answer.headers.emplace_back("Content-Type", std::move(content_type));
  answer.headers.emplace_back("x-request-id", request_id);
  context().send(services_->http, answer);
}

void gateway::respond_error(std::uint64_t exchange, const api::api_error& why, const std::string& request_id) {
  respond(exchange, why.status, api::error_body(why), request_id, api::error_headers(why));
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::gateway>;
