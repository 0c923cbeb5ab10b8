#include "actors/http/gateway.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "actors/http/routing/front_page.hpp"
#include "actors/http/routing/headers.hpp"
#include "actors/http/routing/openapi_document.hpp"
#include "actors/http/routing/paths.hpp"
#include "actors/http/shapes/anthropic/messages_request.hpp"
#include "actors/http/shapes/anthropic/messages_response.hpp"
#include "actors/http/shapes/apply/apply_request.hpp"
#include "actors/http/shapes/apply/edit_completion.hpp"
#include "actors/http/shapes/apply/next_edit.hpp"
#include "actors/http/shapes/ollama/ollama_request.hpp"
#include "actors/http/shapes/ollama/ollama_response.hpp"
#include "actors/http/shapes/openai/request.hpp"
#include "actors/http/shapes/openai/response.hpp"
#include "actors/http/shapes/responses/responses_request.hpp"
#include "actors/http/studio/page_answer.hpp"
#include "actors/http/tool_answers.hpp"
#include "actors/serving/cache_manager.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/size_limits.hpp"
#include "runtime/base/version.hpp"
#include "transport/http_message.hpp"

namespace redline::actors {
namespace {

constexpr microseconds tick{500'000};
constexpr std::size_t request_id_bytes_max = 128;

// The owner of /metrics scrapes in the turns of the reading threads; no key has this id.
constexpr tenant_id monitors{~std::uint64_t{0}};
constexpr std::size_t monitors_job_bytes = 16U << 10;

/// Echoes a client's own id if it is harmless in a header and a log.
std::string choose_request_id(const http_arrived& m, environment& env) {
  const std::string* given = find_header(m.headers, "x-request-id");
  if (given != nullptr && !given->empty() && given->size() <= request_id_bytes_max &&
      std::all_of(given->begin(), given->end(), [](char c) { return c > 0x20 && c < 0x7f; })) {
    return *given;
  }
  return "req-" + to_hex(env.random());
}

}  // namespace

// ---- routes --------------------------------------------------------------------------------------------------------

struct gateway::route {
  enum class access : std::uint8_t { open, monitoring, with_key };  // monitoring: needs a key, works during a drain
  std::string_view method;                                          // GET also serves HEAD
  std::string_view path;                                            // also served under /v1
  access needs;
  void (*serve)(gateway&, const route_context&);
  bool is_of_vllm = false;  // only with --compat vllm
  std::string (*error_body)(const api::api_error&) = api::error_body;

  /// True for routes that monitors and load balancers poll every few seconds.
  [[nodiscard]] bool is_looked_at_often() const {
    return needs == access::monitoring || path == "/health" || path == "/healthz" || path == "/readyz" ||
           path == "/livez" || path == "/favicon.ico";
  }
  [[nodiscard]] bool takes(std::string_view wanted) const {
    return method == wanted || (method == "GET" && wanted == "HEAD");
  }
};

const gateway::route gateway::routes[] = {
    {"GET", "/", route::access::open,
     [](gateway& g, const route_context& r) {
       g.services_->shows_studio ? g.serve_studio(r, "index.html") : g.serve_front_page(r);
     }},
    {"GET", "/studio/{}", route::access::open,
     [](gateway& g, const route_context& r) { g.serve_studio(r, r.captures.front()); }},
    {"GET", "/paths", route::access::open, [](gateway& g, const route_context& r) { g.serve_front_page(r); }},
    {"GET", "/redline/status", route::access::with_key, [](gateway& g, const route_context& r) { g.serve_status(r); }},
    {"GET", "/openapi.json", route::access::open,
     [](gateway& g, const route_context& r) { g.replies_.respond(r.who, 200, std::string(openapi_document())); }},
    {"GET", "/favicon.ico", route::access::open,
     [](gateway& g, const route_context& r) { g.replies_.respond(r.who, 204, {}); }},
    {"POST", "/chat/completions", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, api::parse_chat_request); }},
    {"POST", "/completions", route::access::with_key,
     [](gateway& g, const route_context& r) {
       const bool is_bare = !r.request.path.starts_with("/v1/");
       g.completions_.serve(r, is_bare ? api::parse_completion_or_native_request : api::parse_completion_request);
     }},
    {"POST", "/fim/completions", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, api::parse_fim_request); }},
    {"POST", "/completion", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, api::parse_native_request); }},
    {"POST", "/infill", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, api::parse_infill_request); }},
    {"GET", "/props", route::access::with_key, [](gateway& g, const route_context& r) { g.serve_props(r); }},
    {"GET", "/slots", route::access::with_key, [](gateway& g, const route_context& r) { g.serve_slots(r); }},
    {"POST", "/embeddings", route::access::with_key,
     [](gateway& g, const route_context& r) {
       g.replies_.refuse(r.who, api::not_supported("This server has no embeddings: its models generate text."));
     }},
    {"POST", "/rerank", route::access::with_key,
     [](gateway& g, const route_context& r) {
       g.replies_.refuse(r.who, api::not_supported("This server has no reranking: its models generate text."));
     }},
    {"POST", "/reranking", route::access::with_key,
     [](gateway& g, const route_context& r) {
       g.replies_.refuse(r.who, api::not_supported("This server has no reranking: its models generate text."));
     }},
    {"POST", "/slots/{}", route::access::with_key,
     [](gateway& g, const route_context& r) {
       g.replies_.refuse(r.who, api::not_supported("This server does not save, restore or erase slots: answers share "
                                                   "the KV of common prompt prefixes automatically."));
     }},
    {"GET", "/models", route::access::with_key, [](gateway& g, const route_context& r) { g.serve_models(r); }},
    {"GET", "/models/{*}", route::access::with_key, [](gateway& g, const route_context& r) { g.serve_model(r); }},
    {"POST", "/tokenize", route::access::with_key, [](gateway& g, const route_context& r) { g.serve_tokenize(r); }},
    {"POST", "/detokenize", route::access::with_key, [](gateway& g, const route_context& r) { g.serve_detokenize(r); }},
    {"POST", "/apply-template", route::access::with_key,
     [](gateway& g, const route_context& r) { g.serve_template(r); }},
    {"POST", "/code/apply", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, apply::parse_apply); }},
    {"POST", "/apply/completions", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, apply::parse_apply_completion); }},
    {"POST", "/edit/completions", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, apply::parse_edit_completion); }},
    {"POST", "/backend/next_edit_autocomplete", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, apply::parse_next_edit); }},
    // Sweep's plugins report here what their users accept. Nothing is read or kept.
    {"POST", "/backend/track_autocomplete_metrics", route::access::with_key,
     [](gateway& g, const route_context& r) { g.replies_.respond(r.who, 200, "{}"); }},
    {"POST", "/responses", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, responses::parse_responses); }},
    {"POST", "/messages", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, anthropic::parse_messages); }, false,
     anthropic::error_body},
    {"POST", "/messages/count_tokens", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.count(r, anthropic::parse_count, anthropic::count_body); },
     false, anthropic::error_body},
    {"POST", "/api/chat", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, ollama::parse_chat); }, false,
     ollama::error_body},
    {"POST", "/api/generate", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.serve(r, ollama::parse_generate); }, false,
     ollama::error_body},
    {"GET", "/api/tags", route::access::with_key,
     [](gateway& g,
        const route_context& r) { g.replies_.respond(r.who, 200, ollama::model_list_body(g.list_models())); },
     false, ollama::error_body},
    {"GET", "/api/ps", route::access::with_key,
     [](gateway& g, const route_context& r) { g.replies_.respond(r.who, 200, ollama::running_body(g.list_models())); },
     false, ollama::error_body},
    {"POST", "/api/show", route::access::with_key, [](gateway& g, const route_context& r) { g.serve_ollama_model(r); },
     false, ollama::error_body},
    {"GET", "/api/version", route::access::open,
     [](gateway& g,
        const route_context& r) { g.replies_.respond(r.who, 200, api::version_body(ollama::version_spoken)); },
     false, ollama::error_body},
    {"POST", "/chat/completions/render", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.render(r, api::endpoint::chat); }, true},
    {"POST", "/completions/render", route::access::with_key,
     [](gateway& g, const route_context& r) { g.completions_.render(r, api::endpoint::completions); }, true},
    {"GET", "/version", route::access::open,
     [](gateway& g, const route_context& r) { g.replies_.respond(r.who, 200, api::version_body(build_version())); }},
    {"GET", "/metrics", route::access::monitoring, [](gateway& g, const route_context& r) { g.serve_metrics(r); }},
    {"GET", "/health", route::access::open, [](gateway& g, const route_context& r) { g.serve_health(r); }},
    {"GET", "/healthz", route::access::open, [](gateway& g, const route_context& r) { g.serve_health(r); }},
    {"GET", "/readyz", route::access::open, [](gateway& g, const route_context& r) { g.serve_health(r); }},
    {"GET", "/livez", route::access::open,
     [](gateway& g, const route_context& r) { g.replies_.respond(r.who, 200, api::health_body()); }},
    {"POST", "/redline/sessions", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.open(r); }},
    {"GET", "/redline/sessions/{}", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.show(r); }},
    {"DELETE", "/redline/sessions/{}", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.close(r); }},
    {"POST", "/redline/sessions/{}/complete", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.complete(r); }},
    {"POST", "/redline/sessions/{}/edit", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.edit(r); }},
    {"GET", "/redline/sessions/{}/files/{*}", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.show_file(r); }},
    {"PUT", "/redline/sessions/{}/files/{*}", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.put_file(r); }},
    {"PATCH", "/redline/sessions/{}/files/{*}", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.patch_file(r); }},
    {"DELETE", "/redline/sessions/{}/files/{*}", route::access::with_key,
     [](gateway& g, const route_context& r) { g.edits_.drop_file(r); }},
};

std::optional<api::api_error> gateway::authenticate(const http_arrived& m, caller& who, request_facts& facts) const {
  const auto keys = services_->keys->snapshot();
  if (keys->empty()) return std::nullopt;
  const auto key = shown_key([&](std::string_view name) -> std::optional<std::string_view> {
    const auto* value = find_header(m.headers, name);
    return value != nullptr ? std::optional<std::string_view>(*value) : std::nullopt;
  });
  const auto owner = key ? keys->find(*key) : std::nullopt;
  if (!owner) {
    return api::error_of({errc::unauthorized, key ? "this API key is not known" : "an API key is required"});
  }
  who.tenant = owner->tenant;
  facts.tenant_name = owner->name;
  return std::nullopt;
}

/// The route for the request, with its path's captures. If only the path matches, returns no route but the methods that
/// the path accepts.
gateway::destination gateway::find_route(const std::string& method, std::string_view path) const {
  destination out;
  path = without_version(path);
  if (path.starts_with("/api/")) out.error_body = ollama::error_body;  // for every path of Ollama's
  for (const route& one : routes) {
    if (one.is_of_vllm && !services_->speaks_vllm) continue;
    auto matched = match_path(one.path, path);
    if (!matched) continue;
    out.path = one.path;
    out.error_body = one.error_body;
    out.methods += (out.methods.empty() ? "" : ", ") + std::string(one.method) + (one.method == "GET" ? ", HEAD" : "");
    if (out.found != nullptr || !one.takes(method)) continue;
    out.found = &one;
    out.captures = std::move(*matched);
  }
  return out;
}

api::api_error gateway::no_such_path(const std::string& path) const {
  std::vector<std::string_view> known;
  for (const route& one : routes) {
    if (!one.is_of_vllm || services_->speaks_vllm) known.push_back(one.path);
  }
  const auto wanted = tidy_path(path);
  const auto meant = nearest_path(without_version(wanted), known);
  return api::not_found("There is no path " + path.substr(0, request_fact_bytes_max) +
                        (meant.empty() ? std::string() : "; did you mean /v1" + std::string(meant) + "?") +
                        (meant.empty() ? "; GET /paths lists all paths." : " GET /paths lists all paths."));
}

void gateway::on(http_arrived&& m) {
  arrived_to_ = std::max(arrived_to_, m.exchange);
  const bool gone = left_early_.erase(m.exchange) > 0;
  left_early_.erase(left_early_.begin(), left_early_.lower_bound(m.exchange));  // these never arrived
  if (gone) return;
  caller who{m.exchange, choose_request_id(m, context().env()), tenant_id{0}, context().now()};
  auto where = find_route(m.method, m.path);
  if (where.path.empty()) where = find_route(m.method, tidy_path(m.path));

  auto facts = std::make_shared<request_facts>();
  facts->method = m.method.substr(0, request_fact_bytes_max);
  facts->path = m.path.substr(0, request_fact_bytes_max);
  if (const auto* agent = find_header(m.headers, "user-agent")) facts->agent = agent->substr(0, request_fact_bytes_max);
  if (!where.path.empty()) facts->route = where.path;
  if (where.error_body != nullptr) facts->error_body = where.error_body;
  facts->is_looked_at_often = where.found != nullptr && where.found->is_looked_at_often();
  const auto* origin = find_header(m.headers, "origin");
  if (origin != nullptr && !is_repeated(m.headers, "origin"))
    facts->more_headers = services_->pages.headers_for(*origin);
  const bool knows_origin = !facts->more_headers.empty();
  // A client that watches the server does so for hours.
  const bool is_watched = facts->is_looked_at_often || facts->route == "/redline/status";
  if (services_->tracer && !is_watched) facts->span = begin_span(m, *facts, who.request_id);
  who.facts = facts;

  for (const auto* name : {"Host", "Origin"}) {
    if (is_repeated(m.headers, name))
      return replies_.refuse(who,
                             api::bad_field(name, "Expected one header " + std::string(name) + ", found several."));
  }
  if (!services_->wants_key()) {
    if (const auto why = services_->guard.check(m, knows_origin)) return replies_.refuse(who, *why);
  }
  // Without CORS headers, a browser reads the answer as "not for other origins", which is the desired default.
  if (m.method == "OPTIONS" && !where.path.empty()) {
    header_list more{{"Allow", where.methods + ", OPTIONS"}};
    if (knows_origin) cross_origin::add_preflight(m.headers, where.methods, more);
    return replies_.respond(who, 204, {}, std::move(more));
  }
  const route* const found = where.found;
  const bool is_open = found != nullptr && (found->needs == route::access::open ||
                                            (found->needs == route::access::monitoring && services_->metrics_are_open));
  if (!is_open) {
    if (const auto why = authenticate(m, who, *facts)) return replies_.refuse(who, *why);
  }
  if (ready_.draining() && found != nullptr && found->needs == route::access::with_key) {
    return replies_.refuse(who, *ready_.why_not(context().now()));
  }
  if (found != nullptr) return found->serve(*this, {m, std::move(where.captures), std::move(who)});
  replies_.refuse(who, where.path.empty()
                           ? no_such_path(m.path)
                           : api::method_not_allowed(facts->method, facts->path, where.methods + ", OPTIONS"));
}

/// Continues the client's trace if it sent one well-formed traceparent; its sampling flag then decides, else the ratio.
/// Two headers count as malformed.
std::shared_ptr<trace::open_span> gateway::begin_span(const http_arrived& m, const request_facts& facts,
                                                      const std::string& request_id) const {
  static constexpr std::array known_methods = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
  const bool is_known = std::find(known_methods.begin(), known_methods.end(), m.method) != known_methods.end();
  const bool has_route = facts.route != request_facts().route;
  std::string name = is_known ? m.method : "HTTP";
  if (has_route) name.append(" ").append(facts.route);
  const auto* given = find_header(m.headers, "traceparent");
  const auto from =
      given != nullptr && !is_repeated(m.headers, "traceparent") ? trace::parse_traceparent(*given) : std::nullopt;
  if (from && !from->is_sampled) return nullptr;
  auto& env = context().env();
  auto span = from ? trace::open_span(services_->tracer, env, from->parent, std::move(name), trace::span_kind::server)
                   : trace::open_span::root(services_->tracer, env, std::move(name), trace::span_kind::server);
  if (!span) return nullptr;
  span.set("http.request.method", is_known ? m.method : std::string("_OTHER"));
  span.set("url.path", facts.path);
  if (has_route) span.set("http.route", std::string(facts.route));
  if (!facts.agent.empty()) span.set("user_agent.original", facts.agent);
  span.set("redline.request_id", request_id);
  return std::make_shared<trace::open_span>(std::move(span));
}

void gateway::serve_front_page(const route_context& r) {
  const auto why = why_not_ready();
  front_page page{.version = build_version(), .state = why ? why->message : "ready"};
  page.lacks_studio = !find_studio_file("index.html");
  page.needs_key = services_->wants_key();
  const auto* host = find_header(r.request.headers, "host");
  constexpr auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".:-[]").find(c) != std::string_view::npos;
  };
  const bool is_plain_host = host != nullptr && !host->empty() && std::all_of(host->begin(), host->end(), is_plain);
  page.base_url = "http://" + (is_plain_host ? *host : std::string("127.0.0.1:8080"));
  for (const auto& card : list_models()) page.models.push_back({card.id, card.context_tokens_max});
  for (const route& one : routes) {
    if (!one.is_of_vllm || services_->speaks_vllm) page.paths.push_back({one.method, one.path});
  }
  replies_.respond(r.who, 200, page.html(),
                   {{"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"},
                    {"X-Content-Type-Options", "nosniff"}},
                   std::string(front_page::content_type));
}

void gateway::serve_studio(const route_context& r, std::string_view name) {
  const auto file = services_->shows_studio ? find_studio_file(name) : std::nullopt;
  if (!file) return replies_.refuse(r.who, no_such_path(r.request.path));
  auto answer = answer_with(*file, r.request.headers);
  replies_.respond(r.who, answer.status, std::move(answer.body), std::move(answer.headers),
                   std::string(file->content_type));
}

void gateway::serve_status(const route_context& r) {
  watch_.begin(r.who);
  context().tell(services_->manager, report_status{true});
}

void gateway::serve_health(const route_context& r) {
  if (const auto why = why_not_ready()) return replies_.refuse(r.who, *why);
  replies_.respond(r.who, 200, api::health_body());
}

std::optional<api::api_error> gateway::why_not_ready() const {
  if (auto why = ready_.why_not(context().now())) return why;
  const auto model = services_->find_model("");
  return model ? std::nullopt : std::optional(model.error());
}

std::vector<api::model_card> gateway::list_models() const {
  std::vector<api::model_card> cards;
  const auto catalog = services_->models->snapshot();
  for (const auto& one : catalog->models()) {
    cards.push_back({.id = one.model->name,
                     .aliases = one.aliases,
                     .created_seconds = created_seconds_,
                     .context_tokens_max = one.model->answers->context_max(),
                     .vocabulary_size = one.model->answers->tokenizer()->size(),
                     .known_phrases = one.model->known_phrases,
                     .numerics = {}});
    for (const auto& name : one.model->computed_by) {
      cards.back().numerics.push_back({name, make_fingerprint(one.model->digest, numerics_id(name))});
    }
  }
  return cards;
}

void gateway::serve_models(const route_context& r) {
  replies_.respond(r.who, 200, api::model_list_body(list_models()));
}

void gateway::serve_props(const route_context& r) {
  const auto model = services_->find_model("");
  if (!model) return replies_.refuse(r.who, model.error());
  const auto usual = api::parse_native_request(R"({"prompt":""})", limits_for(*services_));
  const auto settings = usual ? api::native_settings(*usual) : api::json::object();
  const auto& vocab = (*model)->answers->tokenizer()->vocab();
  const auto text_of = [&vocab](std::optional<token> t) { return t ? std::string(vocab.text(*t)) : std::string(); };
  replies_.respond(r.who, 200,
                   api::props_body({.model = (*model)->name,
                                    .context_tokens_max = (*model)->answers->context_max(),
                                    .slots_count = services_->running_max,
                                    .settings = settings,
                                    .chat_template = (*model)->prompts->template_source(),
                                    .bos = text_of(vocab.bos()),
                                    .eos = text_of(vocab.eos()),
                                    .build = "redline-" + build_version()}));
}

/// Reports nothing of what clients ask or receive.
void gateway::serve_slots(const route_context& r) {
  const auto model = services_->find_model("");
  if (!model) return replies_.refuse(r.who, model.error());
  replies_.respond(r.who, 200,
                   api::slots_body(completions_.list_running(r.who.tenant), services_->running_max,
                                   (*model)->answers->context_max()));
}

void gateway::serve_model(const route_context& r) {
  std::string name = r.captures.front();
  while (name.ends_with('/')) name.pop_back();
  const auto found = services_->find_model(name);
  if (!found) return replies_.refuse(r.who, found.error());
  const auto cards = list_models();
  const auto card = std::find_if(cards.begin(), cards.end(), [&](const auto& c) { return c.id == (*found)->name; });
  if (card == cards.end()) return replies_.refuse(r.who, api::error_of({errc::not_ready, ""}));  // it has just left
  replies_.respond(r.who, 200, api::model_body(*card));
}

void gateway::serve_ollama_model(const route_context& r) {
  const auto read = [services = services_,
                     cards = list_models()](const std::string& body) -> api::checked<std::string> {
    const auto name = ollama::parse_show(body);
    if (!name) return name.error();
    const auto found = services->find_model(*name);
    if (!found) return found.error();
    const auto card = std::find_if(cards.begin(), cards.end(), [&](const auto& c) { return c.id == (*found)->name; });
    if (card == cards.end()) return api::error_of({errc::not_ready, ""});  // the model has just been added
    return ollama::model_body(*card);
  };
  respond_read(r, read);
}

/// Answers with the result of `read`, which runs on another thread.
template<class Read>
void gateway::respond_read(const route_context& r, Read read) {
  reader_.read(r, std::move(read),
               [this, who = r.who](std::string answer) { replies_.respond(who, 200, std::move(answer)); });
}

void gateway::serve_tokenize(const route_context& r) {
  const auto read = [services = services_,
                     now = context().env().unix_seconds()](const std::string& body) -> api::checked<std::string> {
    const auto asked = api::parse_tokenize_request(body);
    if (!asked) return asked.error();
    const auto model = services->find_model(asked->model);
    if (!model) return model.error();
    const auto& tokenizer = *(*model)->answers->tokenizer();
    std::vector<token> tokens;
    if (asked->text) {
      tokens =
          tokenizer.encode(*asked->text, {.parse_special = asked->parse_special, .add_bos_eos = asked->add_special});
    } else {
      if (const auto why = check_tools(**model, asked->tools)) return *why;
      const auto& prompts = *(*model)->prompts;
      const auto* const tools = asked->tools ? &*asked->tools : nullptr;
      const auto rendered =
          asked->continues_last
              ? prompts.render_to_continue(asked->messages, now, tools, asked->template_variables)
              : prompts.render(asked->messages, asked->add_generation_prompt, now, tools, asked->template_variables);
      if (!rendered) return api::error_of(rendered.error());
      tokens = prompts.tokens(*rendered);
    }
    std::vector<std::string> pieces;
    if (asked->with_pieces) {
      for (const token t : tokens) pieces.emplace_back(tokenizer.piece(t, true));
    }
    return api::tokenize_body(*asked, tokens, pieces, (*model)->answers->context_max());
  };
  respond_read(r, read);
}

void gateway::serve_detokenize(const route_context& r) {
  const auto read = [services = services_](const std::string& body) -> api::checked<std::string> {
    const auto asked = api::parse_detokenize_request(body);
    if (!asked) return asked.error();
    const auto model = services->find_model(asked->model);
    if (!model) return model.error();
    const auto& tokenizer = *(*model)->answers->tokenizer();
    std::size_t text_bytes = 0;
    for (const token t : asked->tokens) text_bytes += tokenizer.piece(t, true).size();
    if (text_bytes > sizes::spelled_text_bytes_max) {
      return api::bad_field("tokens", "'tokens' decode to " + std::to_string(text_bytes) + " bytes; expected at most " +
                                          std::to_string(sizes::spelled_text_bytes_max) + " in one request.");
    }
    const auto text = tokenizer.decode(asked->tokens, {.render_special = true});
    if (!text) return api::bad_field("tokens", text.error().context);
    return api::detokenize_body(*text);
  };
  respond_read(r, read);
}

void gateway::serve_template(const route_context& r) {
  const auto read = [services = services_,
                     now = context().env().unix_seconds()](const std::string& body) -> api::checked<std::string> {
    const auto asked = api::parse_template_request(body);
    if (!asked) return asked.error();
    const auto model = services->find_model(asked->model);
    if (!model) return model.error();
    if (const auto why = check_tools(**model, asked->tools)) return *why;
    const auto& prompts = *(*model)->prompts;
    const auto* const tools = asked->tools ? &*asked->tools : nullptr;
    const auto prompt =
        asked->continues_last
            ? prompts.render_to_continue(asked->messages, now, tools, asked->template_variables)
            : prompts.render(asked->messages, asked->add_generation_prompt, now, tools, asked->template_variables);
    if (!prompt) return api::error_of(prompt.error());
    return api::template_body(prompt->text_without_marks());
  };
  respond_read(r, read);
}

void gateway::serve_metrics(const route_context& r) {
  gateway_probe::state now{.ready = !why_not_ready(),
                           .edit_sessions = edits_.sessions_count(),
                           .edit_bytes = services_->edit_bytes->bytes(),
                           .edit_bytes_refused = services_->edit_bytes->refused_count(),
                           .request_bytes = services_->request_bytes->bytes(),
                           .request_bytes_refused = services_->request_bytes->refused_count(),
                           .answers_running = completions_.answers_count(),
                           .name_conflicts = services_->models->snapshot()->conflicts().size(),
                           .scheduler = ready_.scheduler(),
                           .undelivered = actor::read_undelivered_counts(),
                           .refused_by_bridge = transport::read_bridge_counts(),
                           .refused_by_front = transport::read_refusal_counts(),
                           .handlers = actor::handler_times::read_all(context().now())};
  if (services_->tracer) now.spans = services_->tracer->counts();
  if (services_->speaks_vllm) {
    const auto model = services_->find_model("");
    now.as_vllm = {model ? (*model)->name : std::string(), context().env().unix_seconds()};
  }
  services_->probe->look(now);
  // The full text and the data from /proc take some milliseconds. Monitors do not wait for tenants' jobs.
  caller monitor = r.who;
  monitor.tenant = monitors;
  reader_.run(
      monitor, monitors_job_bytes,
      [probe = services_->probe, as_vllm = now.as_vllm]() -> api::checked<std::string> {
        return probe->write(as_vllm);
      },
      [this, who = r.who](std::string text) {
        replies_.respond(who, 200, std::move(text), {}, std::string(gateway_probe::content_type));
      });
}

// ---- everything but requests ---------------------------------------------------------------------------------------

gateway::gateway(actor::actor_context& context, std::shared_ptr<const gateway_services> services)
    : actor_of(context),
      services_(std::move(services)),
      replies_(context, services_->http, services_->probe),
      reader_(context, services_, replies_),
      completions_(context, services_, ready_, replies_, reader_),
      edits_(context, services_, ready_, replies_, reader_, completions_),
      watch_(replies_),
      created_seconds_(context.env().unix_seconds()) {
  services_->probe->add_route(request_facts().route);  // for unknown paths
  for (const route& one : routes) services_->probe->add_route(one.path);
}

void gateway::on_start() {
  context().send(services_->http, http_forget{});
  on(gateway_tick{});
}

void gateway::on(const gateway_tick&) {
  context().after(tick, gateway_tick{});
  context().tell(services_->manager, report_status{!watch_.empty()});
  watch_.drop_slow(context().now());
  if (watch_.is_silent(context().now())) tell_watchers({});
  const bool idle = replies_.idle() && reader_.idle() && completions_.idle() && edits_.idle();
  if (ready_.draining() && idle && !std::exchange(drained_, true) && services_->on_drained) services_->on_drained();
}

void gateway::on(const scheduler_report& m) {
  if (context().sender() != services_->manager.where) return;  // a worker of the pool, which was not asked
  if (m.tokens_max > 0) {
    const auto models = services_->models->snapshot();
    for (const auto& one : models->models()) one.model->answers->set_tokens_max(m.tokens_max);
  }
  ready_.hear(m, context().now());
  if (!why_not_ready() && !std::exchange(was_ready_, true) && services_->on_ready) services_->on_ready();
  tell_watchers(m);
}

void gateway::tell_watchers(const scheduler_report& report) {
  if (watch_.empty()) return;
  const auto up = context().env().unix_seconds() - created_seconds_;
  status_watch::server_state state{.uptime_seconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, up)),
                                   .answers_running = completions_.answers_count(),
                                   .edit_sessions = edits_.sessions_count(),
                                   .totals = services_->probe->read_totals(),
                                   .ready = !why_not_ready()};
  for (const auto& card : list_models()) state.models.push_back(card.id);
  state.conflicts = services_->models->snapshot()->conflicts();
  watch_.tell(state, report, context().now());
}

void gateway::on(const drain_gateway&) {
  ready_.drain();
  watch_.end_all();
  context().send(services_->http, http_drain{});
}

void gateway::on(const cancel_everything&) {
  const failure why{errc::draining, "the server is shutting down"};
  reader_.fail_all(why);
  completions_.fail_all(why, 1000);
}

void gateway::on(const http_flow& m) {
  watch_.on(m, context().now());
  completions_.on(m);
}

void gateway::on(const http_closed& m) {
  if (replies_.client_left(m.exchange) || reader_.client_left(m.exchange) || edits_.client_left(m.exchange) ||
      completions_.client_left(m.exchange) || watch_.client_left(m.exchange))
    return;
  // Control messages overtake, so the request itself may still be in the mailbox. Exchanges are numbered in order.
  if (m.exchange > arrived_to_) left_early_.insert(m.exchange);
}

void gateway::on(const actor::actor_down& m) {
  if (!edits_.session_died(m.who)) completions_.session_died(m.who);
}

void gateway::on(const actor::peer_state& m) {
  if (m.process != actor::process_of(services_->manager.where)) return;
  if (!m.reachable || ready_.scheduler() == nullptr) ready_.lose_scheduler(m.why_not);
}

// A session that cannot be reached has died, and actor_down reports it.
void gateway::on(const actor::undeliverable& m) {
  if (m.to == services_->manager.where && ready_.scheduler() != nullptr) ready_.lose_scheduler();
  const bool was_answer = m.what == http_respond::id || m.what == http_body::id || m.what == http_stream::id;
  if (m.to == services_->http && was_answer) {
    completions_.answer_lost(m.about, m.why);
    replies_.fail(m.about, api::error_of({errc::internal, "the answer could not be delivered"}));
  }
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::gateway>;
