#include "tests/actors/http/gateway_fixture.hpp"

#include "runtime/base/log.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {

void gateway_alone::SetUp() {
  configure_log(log_level::off, log_format::text);
  static const auto file = test::make_tiny_model({.context = 256}).file();
  tokenizer = *text::tokenizer::from_file(*file);
  auto s = services = std::make_shared<gateway_services>();
  s->models->publish(make_model("tiny", tokenizer));
  s->manager = {manager_where};
  s->http = http_where;
  s->on_ready = [this] { ++became_ready; };
  s->on_drained = [this] { ++drained; };
  core.add<gateway>(2, "gateway", {64, 64}, [s](actor::actor_context& c) { return std::make_unique<gateway>(c, s); });
  tell(scheduler_report{.ready = true}, manager_where);
  run();
  sent.clear();
}

std::shared_ptr<served_model> gateway_alone::make_model(const std::string& name,
                                                        std::shared_ptr<const text::tokenizer> by,
                                                        std::uint64_t digest) {
  auto model = std::make_shared<served_model>();
  model->name = name;
  model->digest = digest;
  model->fingerprint = make_fingerprint(digest, numerics_id("exact"));
  model->prompts = std::make_shared<prompt_builder>(*prompt_builder::make(by));
  model->answers = std::make_shared<answer_factory>(
      answer_factory::parts{.tokenizer = std::move(by),
                            .context_max = 256,
                            .partners_for = [this](draft::method, actor::address client) -> result<session_partners> {
                              if (is_in_pool) return session_partners{.placer = {placer_where}, .client = client};
                              return session_partners{.manager = {manager_where}, .client = client};
                            }});
  return model;
}

void gateway_alone::run() {
  do {
    while (core.run_ready()) {
    }
    std::deque<actor::frame> posted;
    posted.swap(link.sent);
    for (auto& f : posted) {
      if (f.head.id == actor::job_done::id) ++jobs_done;
      if (actor::node_of(f.head.to) == actor::node_of(gateway_where))
        core.deliver(std::move(f));
      else
        sent.push_back(std::move(f));
    }
  } while (core.run_ready() || !link.sent.empty());
}

void gateway_alone::pass(microseconds time) {
  env.advance(time);
  core.fire_timers();
  run();
}

std::uint64_t gateway_alone::ask(const std::string& method, const std::string& path, const nlohmann::json& body) {
  header_list headers = more_headers;
  if (!key.empty()) headers.emplace_back("Authorization", "Bearer " + key);
  tell(http_arrived{.exchange = ++exchange,
                    .method = method,
                    .path = path,
                    .headers = headers,
                    .body = body.is_null() ? "" : body.dump()});
  return exchange;
}

std::uint64_t gateway_alone::ask_for_text(bool stream) {
  return ask("POST", "/v1/chat/completions",
             {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"stream", stream}, {"max_tokens", 8}});
}

std::optional<http_respond> gateway_alone::answer_to(std::uint64_t id) const {
  for (const auto& m : all<http_respond>()) {
    if (m.exchange == id) return m;
  }
  return std::nullopt;
}

std::uint32_t gateway_alone::status_of(std::uint64_t id) const {
  return answer_to(id).value_or(http_respond{.status = 0}).status;
}

std::uint32_t gateway_alone::call(const std::string& method, const std::string& path) {
  const auto id = ask(method, path);
  run();
  return status_of(id);
}

std::string gateway_alone::metrics() {
  const auto id = ask("GET", "/metrics");
  run();
  return answer_to(id)->body;
}

double gateway_alone::metric(const std::string& series) {
  const std::string text = metrics();
  const auto at = text.find("\n" + series + " ");
  EXPECT_NE(at, std::string::npos) << series << " in\n" << text;
  return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
}

session_id gateway_alone::session_in_progress() const { return {all<verify_run>().at(0).round.sequence.value}; }

std::vector<session_id> gateway_alone::all_sessions() const {
  std::vector<session_id> found;
  for (const auto& m : all<verify_run>()) found.push_back({m.round.sequence.value});
  return found;
}

actor::address gateway_alone::address_of(session_id) const {
  for (const auto& f : sent) {
    if (f.head.id == verify_run::id) return f.head.from;
  }
  return {};
}

std::vector<std::string> events_of(const std::vector<http_stream>& parts, std::uint64_t exchange) {
  std::string all;
  for (const auto& p : parts) all += p.exchange == exchange ? p.data : "";
  std::vector<std::string> events;
  for (std::size_t end = 0; (end = all.find("\n\n")) != std::string::npos; all.erase(0, end + 2)) {
    events.push_back(all.substr(0, end + 2));
  }
  return events;
}

std::string id_in(const std::string& event) { return event.substr(4, event.find('\n') - 4); }

}  // namespace redline::actors
