// The gateway's part in edit sessions: whose they are, and which call goes where.

#include <algorithm>
#include <charconv>

#include "actors/editing/edit_prompt.hpp"
#include "actors/http/gateway.hpp"
#include "actors/serving/verify_scheduler.hpp"

namespace redline::actors {
namespace {

constexpr std::string_view sessions_path = "/redline/sessions";
constexpr std::string_view name_prefix = "live-";

std::string name_of(session_id session) {
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(session.value));
  return std::string(name_prefix) + hex;
}

std::optional<session_id> session_of(std::string_view name) {
  if (!name.starts_with(name_prefix)) return std::nullopt;
  name.remove_prefix(name_prefix.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value, 16);
  if (name.size() != 16 || error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return session_id{value};
}

api::api_error no_such_session(std::string_view name) {
  return api::not_found("no session '" + std::string(name.substr(0, 64)) + "'", "session_not_found");
}

std::string_view text_of(edit_verb verb) {
  static constexpr std::string_view names[] = {"open",      "show",     "show_file", "put_file", "patch_file",
                                               "drop_file", "complete", "edit",      "close"};
  return names[static_cast<std::size_t>(verb)];
}

}  // namespace

bool gateway::route_live(const visit& v) {
  if (!v.path.starts_with(sessions_path)) return false;
  const auto& m = v.m;
  std::string_view rest = std::string_view(v.path).substr(sessions_path.size());
  if (rest.empty()) {
    if (m.method == "POST")
      open_live(v);
    else
      respond_error(m.exchange, api::method_not_allowed(m.method, m.path), v.request_id);
    return true;
  }
  if (rest.front() != '/') return false;
  rest.remove_prefix(1);
  const std::string_view name = rest.substr(0, rest.find('/'));
  rest.remove_prefix(name.size());
  const auto session = session_of(name);
  const auto live = session ? live_.find(*session) : live_.end();
  // Another tenant's session is none: that there is one is nobody else's business.
  if (live == live_.end() || live->second.tenant != v.tenant) {
    respond_error(m.exchange, no_such_session(name), v.request_id);
    return true;
  }

  struct entry {
    std::string_view method, place;
    edit_verb verb;
  };
  static constexpr std::string_view files = "/files/";
  static constexpr entry table[] = {{"GET", "", edit_verb::show},
                                    {"DELETE", "", edit_verb::close},
                                    {"POST", "/complete", edit_verb::complete},
                                    {"POST", "/edit", edit_verb::edit},
                                    {"GET", files, edit_verb::show_file},
                                    {"PUT", files, edit_verb::put_file},
                                    {"PATCH", files, edit_verb::patch_file},
                                    {"DELETE", files, edit_verb::drop_file}};
  const bool is_file = rest.starts_with(files) && rest.size() > files.size();
  bool place_known = false;
  for (const auto& e : table) {
    if (is_file ? e.place != files : e.place != rest || e.place == files) continue;
    place_known = true;
    if (e.method != m.method) continue;
    call_live(v, *session, e.verb, is_file ? std::string(rest.substr(files.size())) : std::string());
    return true;
  }
  respond_error(m.exchange,
                place_known ? api::method_not_allowed(m.method, m.path) : api::not_found("no such path: " + m.path),
                v.request_id);
  return true;
}

std::optional<api::api_error> gateway::room_for_live(tenant_id tenant) const {
  const auto& limits = services_->live;
  const auto mine = static_cast<std::size_t>(
      std::count_if(live_.begin(), live_.end(), [&](const auto& one) { return one.second.tenant == tenant; }));
  if (live_.size() < limits.sessions_max && mine < limits.tenant_sessions_max) return std::nullopt;
  const bool own = mine >= limits.tenant_sessions_max;
  return api::api_error{
      429,
      "rate_limit_error",
      own ? "You have " + std::to_string(mine) + " edit sessions, the most there may be; close one."
          : "The server has " + std::to_string(live_.size()) + " edit sessions, the most there may be.",
      "",
      "session_limit",
      {}};
}

void gateway::open_live(const visit& v) {
  const auto refuse = [&](const api::api_error& why) { respond_error(v.m.exchange, why, v.request_id); };
  const auto parsed = api::parse_open_session(v.m.body, services_->live);
  if (!parsed) return refuse(parsed.error());
  if (!knows_model(parsed->model)) {
    return refuse(api::error_of({errc::model_not_found, "no model '" + parsed->model + "'"}));
  }
  if (draining_) return refuse(api::error_of({errc::draining, "the server is shutting down"}));
  if (const auto why = room_for_live(v.tenant)) return refuse(*why);
  workspace files(services_->tokenizer, {services_->live, parsed->units, services_->context_max});
  for (std::size_t i = 0; i < parsed->files.size(); ++i) {
    if (auto why = files.put(parsed->files[i])) {
      why->param = "files[" + std::to_string(i) + "]" + (why->param.empty() ? "" : "." + why->param);
      return refuse(*why);
    }
  }
  const auto partners = services_->partners_for(draft::method::regular, context().self());
  if (!partners) return refuse(api::error_of(partners.error(), v.request_id));
  const session_id id{context().env().random() | 1};
  edit_identity who{.session = id,
                    .name = name_of(id),
                    .tenant = v.tenant,
                    .model = services_->model_name,
                    .idle_max = microseconds{parsed->idle_seconds_max * 1'000'000},
                    .cache = parsed->cache,
                    .scheduler = partners->scheduler,
                    .gateway = context().self()};
  const auto where = context().spawn<edit_session>("edit session " + who.name, {1024, 1024}, who, std::move(files));
  live_[id] = {where, v.tenant};
  services_->metrics->counter_of("live_sessions_opened_total", "Edit sessions opened").add();
  call_live(v, id, edit_verb::open);
}

void gateway::call_live(const visit& v, session_id session, edit_verb verb, std::string path) {
  const bool generates = verb == edit_verb::complete || verb == edit_verb::edit;
  live_wait wait{.who = v.who(), .session = session, .wish = {}, .began = context().now()};
  if (generates) {
    if (const auto why = readiness()) return respond_error(v.m.exchange, *why, v.request_id);
    auto wish = api::parse_live_generation(v.m.body, verb == edit_verb::edit);
    if (!wish) return respond_error(v.m.exchange, wish.error(), v.request_id);
    wait.wish = std::move(*wish);
  }
  services_->metrics->counter_of("live_calls_total", "Calls of edit sessions", {{"verb", text_of(verb)}}).add();
  live_waits_.emplace(v.m.exchange, std::move(wait));
  context().tell(live_.at(session).where,
                 edit_call{v.m.exchange, verb, std::move(path), verb == edit_verb::open ? "" : v.m.body});
}

void gateway::on(const edit_reply& m) {
  const auto wait = live_waits_.find(m.exchange);
  if (wait == live_waits_.end()) return;
  header_list more;
  if (m.status == 409) more.emplace_back("x-should-retry", "false");
  respond(m.exchange, m.status, m.body, wait->second.who.request_id, std::move(more));
  live_waits_.erase(wait);
}

void gateway::on(const edit_prompt_made& m) {
  const auto found = live_waits_.find(m.exchange);
  // The client left: the edit session hears of it on its own way.
  if (found == live_waits_.end() || !found->second.wish) return;
  live_wait wait = std::move(found->second);
  live_waits_.erase(found);
  request_state r;
  r.wish = std::move(*wait.wish);
  r.began = wait.began;
  std::vector<std::vector<token>> prompts{m.prompt};
  std::vector<token> prediction;
  std::optional<borrowed_sequence> borrowed;
  std::optional<api::api_error> why;
  if (m.sequence.value != 0) {
    borrowed = {m.sequence, m.last_round, services_->context_max, context().sender()};
    r.live = wait.session;
    r.wish.stop.insert(r.wish.stop.end(), m.stops.begin(), m.stops.end());
  } else {
    const edit_task task{m.path, m.text, m.instruction};
    r.wish.messages.push_back({{"role", "user"}, {"content", message_of(task)}});
    // Most of the new file is the old one.
    if (!r.wish.prediction && draft::reads_prediction(r.wish.drafting(services_->draft_defaults).how)) {
      r.wish.prediction = m.text;
    }
    auto made = prompts_of(r.wish);
    auto guess = prediction_of(r.wish);
    if (!made)
      why = made.error();
    else if (!guess)
      why = guess.error();
    else
      prompts = std::move(*made), prediction = std::move(*guess);
  }
  if (!why) why = begin_request(wait.who, std::move(r), prompts, prediction, borrowed);
  if (!why) return;
  if (borrowed) context().send(context().sender(), edit_withdraw{m.exchange});
  respond_error(m.exchange, *why, wait.who.request_id);
}

void gateway::on(const edit_session_over& m) {
  live_.erase(m.session);
  refuse_waits_on(m.session);
}

void gateway::refuse_waits_on(session_id session) {
  std::vector<std::uint64_t> left;
  for (const auto& [exchange, wait] : live_waits_) {
    if (wait.session == session) left.push_back(exchange);
  }
  for (const std::uint64_t exchange : left) {
    respond_error(exchange, no_such_session(name_of(session)), live_waits_.at(exchange).who.request_id);
    live_waits_.erase(exchange);
  }
}

}  // namespace redline::actors
