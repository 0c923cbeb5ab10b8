#include "actors/http/shapes/openai/edit_response.hpp"

#include "actors/http/fields/json.hpp"
#include "actors/http/shapes/openai/response.hpp"

namespace redline::api {
namespace {

json file_object(const actors::file_state& file) {
  json object;
  object["object"] = "redline.file";
  object["path"] = file.path;
  object["version"] = file.version;
  object["bytes"] = file.bytes;
  object["lines"] = file.lines;
  object["tokens"] = file.tokens;
  return object;
}

json kv_object_of(const actors::kv_state& kv) { return kv_object({.exact = kv.exact, .stale = kv.stale}); }

}  // namespace

std::string session_body(const session_card& card, const actors::session_shown& shown) {
  json body;
  body["id"] = card.id;
  body["object"] = "redline.session";
  body["model"] = card.model;
  body["position_encoding"] = card.units == text::position_encoding::utf8 ? "utf-8" : "utf-16";
  body["cache"] = {
      {"policy", name_of(card.cache.policy)}, {"healing", card.cache.heals}, {"healed", shown.healed_count}};
  body["kv"] = kv_object_of(shown.kv);
  body["idle_seconds"] = card.idle_seconds;
  body["files"] = json::array();
  for (const auto& f : shown.files) body["files"].push_back(file_object(f));
  return dump_json(body);
}

std::string file_body(const actors::file_shown& shown) {
  json body = file_object(shown.file);
  if (shown.text) body["text"] = *shown.text;
  if (shown.change) {
    body["tokens_removed"] = shown.change->tokens_removed;
    body["tokens_inserted"] = shown.change->tokens_inserted;
    body["kv"] = kv_object_of(shown.change->kv);
  }
  return dump_json(body);
}

api_error error_of(const actors::refusal& why, std::string_view request_id) {
  using kind = actors::refusal::kind;
  switch (why.what) {
    case kind::no_such_file:
      return not_found(why.why.context, "file_not_found");
    case kind::session_full:
      return {413, "invalid_request_error", why.why.context, "", "session_limit", {}};
    case kind::memory_full:
      return {429, "rate_limit_error", why.why.context, "", "session_memory_limit", {}};
    case kind::bad_grammar:
      return bad_field(why.field, why.why.context, "invalid_grammar");
    case kind::failure:
    case kind::last_:
      break;
  }
  auto error = error_of(why.why, request_id);
  if (error.param.empty()) error.param = why.field;
  return error;
}

}  // namespace redline::api
