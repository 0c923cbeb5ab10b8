#include "actors/http/edit_routes.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "actors/serving/cache_manager.hpp"
#include "runtime/base/hex.hpp"

namespace redline::actors {
namespace {

constexpr std::string_view name_prefix = "live-";

std::optional<session_id> parse_session(std::string_view name) {
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

}  // namespace

edit_routes::edit_routes(actor::actor_context& context, std::shared_ptr<const gateway_services> services,
                         const readiness& ready, http_replies& replies, request_reader& reader, completions& answers)
    : context_(context),
      services_(std::move(services)),
      ready_(ready),
      replies_(replies),
      reader_(reader),
      answers_(answers) {}

// ---- from a client to its session ----------------------------------------------------------------------------------

std::optional<api::api_error> edit_routes::room_for(tenant_id tenant) const {
  const auto& limits = services_->editing;
  const auto own = static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& one) { return one.second.tenant == tenant; }));
  const auto full = [](std::string message) {
    return api::api_error{429, "rate_limit_error", std::move(message), "", "session_limit", {}};
  };
  if (own >= limits.tenant_sessions_max) {
    return full("You have " + std::to_string(own) + " edit sessions, which is the maximum; close one.");
  }
  if (sessions_.size() >= limits.sessions_max) {
    return full("The server has " + std::to_string(sessions_.size()) +
                " edit sessions, which is the maximum; try again later.");
  }
  return std::nullopt;
}

void edit_routes::open(const route_context& r) {
  if (ready_.draining()) return replies_.refuse(r.who, *ready_.why_not(context_.now()));
  if (const auto why = room_for(r.who.tenant)) return replies_.refuse(r.who, *why);
  struct read_files {
    api::open_session_request parsed;
    std::shared_ptr<const served_model> model;
    workspace files;
  };
  const auto read = [services = services_, tenant = r.who.tenant](const std::string& body) -> api::checked<read_files> {
    auto parsed = api::parse_open_session(body, services->editing);
    if (!parsed) return parsed.error();
    auto model = services->find_model(parsed->model);
    if (!model) return model.error();
    const answer_factory& answers = *(*model)->answers;
    workspace files(answers.tokenizer(), {services->editing, parsed->units, answers.context_max()},
                    edit_memory::claim(services->edit_bytes, tenant));
    for (std::size_t i = 0; i < parsed->files.size(); ++i) {
      const auto& f = parsed->files[i];
      if (auto why = files.put(f.path, f.text, f.version)) {
        why->field = "files[" + std::to_string(i) + "]" + (why->field.empty() ? "" : "." + why->field);
        return api::error_of(*why, {});
      }
    }
    return read_files{std::move(*parsed), std::move(*model), std::move(files)};
  };
  reader_.read(r, read, [this, who = r.who](read_files given) {
    open_with(who, given.parsed, std::move(given.model), std::move(given.files));
  });
}

void edit_routes::open_with(const caller& who, const api::open_session_request& parsed,
                            std::shared_ptr<const served_model> model, workspace files) {
  if (const auto why = room_for(who.tenant)) return replies_.refuse(who, *why);
  if (model->keeps_states && parsed.cache.policy != kv::splice_policy::exact) {
    return replies_.refuse(
        who, api::bad_field("cache.policy",
                            "Layers of this model keep a state that cannot lose tokens, so only the policy 'exact' can "
                            "be used.",
                            "unsupported_parameter"));
  }
  const auto partners = model->answers->partners_for(draft::method::regular, context_.self());
  if (!partners) return replies_.refuse(who, api::error_of(partners.error(), who.request_id));
  const session_id id{context_.env().random() | 1};
  const std::string name = std::string(name_prefix) + to_hex(id.value);
  edit_session_options options{.session = id,
                               .tenant = who.tenant,
                               .idle_max = microseconds{parsed.idle_seconds_max * 1'000'000},
                               .policy = parsed.cache.policy,
                               .heals = parsed.cache.heals,
                               .answers = model->answers,
                               .prompts = model->prompts,
                               .pool = services_->pool,
                               .placer = partners->placer,
                               .model = partners->place.model,
                               .manager = partners->manager,
                               .client = context_.self(),
                               .waiting = edit_memory::claim(services_->edit_bytes, who.tenant)};
  const auto where =
      context_.spawn<edit_session>("edit session " + name, {1024, 1024}, std::move(options), std::move(files));
  api::session_card card{name, model->name, parsed.units, parsed.cache, parsed.idle_seconds_max};
  sessions_[id] = {where, who.tenant, std::move(model), std::move(card)};
  services_->probe->edit_session_opened();
  pass_on(who, sessions_[id], edit_verb::open, show_session{});
}

edit_routes::open_session* edit_routes::find(const caller& who, const std::string& name) {
  const auto id = parse_session(name);
  const auto at = id ? sessions_.find(*id) : sessions_.end();
  // Another tenant's session counts as missing: even its existence is private.
  if (at != sessions_.end() && at->second.tenant == who.tenant) return &at->second;
  replies_.refuse(who, no_such_session(name));
  return nullptr;
}

template<class Parse, class Then>
void edit_routes::read_for_session(const route_context& r, Parse parse, Then then) {
  if (find(r) == nullptr) return;
  reader_.read(r, std::move(parse), [this, who = r.who, name = r.captures.front(), then = std::move(then)](auto given) {
    if (const auto* s = find(who, name)) then(*s, std::move(given));
  });
}

template<class M>
void edit_routes::pass_on(const caller& who, const open_session& to, edit_verb verb, M message) {
  services_->probe->edit_call(verb);
  message.exchange = who.exchange;
  calls_[who.exchange] = {who, *parse_session(to.card.id), verb == edit_verb::open};
  context_.tell(to.where, message);
}

template<class M>
void edit_routes::pass_on_generation(const caller& who, const open_session& to, edit_verb verb, M message,
                                     expected_answer how) {
  auto spec = answers_.expect(who, std::move(how), to.where);
  if (!spec) return;
  services_->probe->edit_call(verb);
  message.exchange = who.exchange;
  message.spec = std::move(*spec);
  context_.tell(to.where, message);
}

void edit_routes::show(const route_context& r) {
  if (const auto* s = find(r)) pass_on(r.who, *s, edit_verb::show, show_session{});
}

void edit_routes::close(const route_context& r) {
  if (const auto* s = find(r)) pass_on(r.who, *s, edit_verb::close, close_session{});
}

void edit_routes::show_file(const route_context& r) {
  if (const auto* s = find(r)) pass_on(r.who, *s, edit_verb::show_file, actors::show_file{.path = r.captures[1]});
}

void edit_routes::drop_file(const route_context& r) {
  if (const auto* s = find(r)) pass_on(r.who, *s, edit_verb::drop_file, actors::drop_file{.path = r.captures[1]});
}

void edit_routes::put_file(const route_context& r) {
  read_for_session(
      r,
      [services = services_, path = r.captures[1]](const std::string& body) {
        return api::parse_put_file(path, body, services->editing);
      },
      [this, who = r.who](const open_session& s, actors::put_file given) {
        pass_on(who, s, edit_verb::put_file, std::move(given));
      });
}

void edit_routes::patch_file(const route_context& r) {
  read_for_session(
      r,
      [services = services_, path = r.captures[1]](const std::string& body) {
        return api::parse_patch(path, body, services->editing);
      },
      [this, who = r.who](const open_session& s, actors::patch_file given) {
        pass_on(who, s, edit_verb::patch_file, std::move(given));
      });
}

namespace {

/// A call to an edit session that starts an answer, and how to make that answer.
template<class Call>
struct read_generation_call {
  Call call;
  expected_answer how;
};

}  // namespace

void edit_routes::complete(const route_context& r) {
  const auto* session = find(r);
  if (session == nullptr) return;
  if (const auto why = ready_.why_not(context_.now())) return replies_.refuse(r.who, *why);
  using read = read_generation_call<complete_text>;
  read_for_session(
      r,
      [services = services_, model = session->model,
       when = answers_.look_at(r)](const std::string& body) -> api::checked<read> {
        auto given = api::parse_complete(body, services->editing);
        if (!given) return given.error();
        auto how = read_expected(*services, model, std::move(given->how), when);
        if (!how) return how.error();
        return read{{.where = std::move(given->where)}, std::move(*how)};
      },
      [this, who = r.who](const open_session& s, read given) {
        pass_on_generation(who, s, edit_verb::complete, std::move(given.call), std::move(given.how));
      });
}

void edit_routes::edit(const route_context& r) {
  const auto* session = find(r);
  if (session == nullptr) return;
  if (const auto why = ready_.why_not(context_.now())) return replies_.refuse(r.who, *why);
  using read = read_generation_call<edit_file>;
  read_for_session(
      r,
      [services = services_, model = session->model,
       when = answers_.look_at(r)](const std::string& body) -> api::checked<read> {
        auto given = api::parse_edit(body, services->editing);
        if (!given) return given.error();
        edit_file message{
            .path = std::move(given->path), .version = given->version, .instruction = std::move(given->instruction)};
        // Most of the new file repeats the old one.
        auto& how = given->how;
        if (!how.prediction && draft::reads_prediction(how.drafting(model->draft_defaults).how)) {
          message.predicts_file = true;
          // Makes `drafting` choose a method that reads a prediction; the session replaces this one with the file.
          how.prediction = "";
        }
        auto expected = read_expected(*services, model, std::move(how), when);
        if (!expected) return expected.error();
        return read{std::move(message), std::move(*expected)};
      },
      [this, who = r.who](const open_session& s, read given) {
        pass_on_generation(who, s, edit_verb::edit, std::move(given.call), std::move(given.how));
      });
}

// ---- from a session to its client ----------------------------------------------------------------------------------

std::optional<edit_routes::call> edit_routes::take(std::uint64_t exchange) {
  const auto at = calls_.find(exchange);
  if (at == calls_.end()) return std::nullopt;
  call c = std::move(at->second);
  calls_.erase(at);
  return c;
}

void edit_routes::on(const session_shown& m) {
  const auto c = take(m.exchange);
  const auto s = c ? sessions_.find(c->session) : sessions_.end();
  if (s != sessions_.end()) replies_.respond(c->who, c->opens ? 201 : 200, api::session_body(s->second.card, m));
}

void edit_routes::on(const file_shown& m) {
  if (const auto c = take(m.exchange)) replies_.respond(c->who, m.is_new ? 201 : 200, api::file_body(m));
}

void edit_routes::on(const call_done& m) {
  if (const auto c = take(m.exchange)) replies_.respond(c->who, 204, {});
}

void edit_routes::on(const call_refused& m) {
  if (const auto c = take(m.exchange)) return replies_.refuse(c->who, api::error_of(m.why, c->who.request_id));
  answers_.refuse(m.exchange, m.why);
}

void edit_routes::on(const edit_session_alive& m) {
  if (!sessions_.contains(m.session)) context_.send(context_.sender(), close_session{});
}

void edit_routes::on(const edit_session_over& m) {
  const auto s = sessions_.find(m.session);
  if (s == sessions_.end()) return;
  const auto why = no_such_session(s->second.card.id);
  answers_.starter_is_gone(s->second.where, why);
  for (auto at = calls_.begin(); at != calls_.end();) {
    if (at->second.session != m.session) {
      ++at;
      continue;
    }
    replies_.refuse(at->second.who, why);
    at = calls_.erase(at);
  }
  sessions_.erase(s);
}

bool edit_routes::session_died(actor::address where) {
  for (const auto& [id, s] : sessions_) {
    if (s.where.where != where) continue;
    on(edit_session_over{id});
    return true;
  }
  return false;
}

}  // namespace redline::actors
