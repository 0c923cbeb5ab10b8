#include "actors/http/request/answer_parts.hpp"

#include <utility>

namespace redline::api {

json arguments_object(const tools::tool_call& call) {
  auto parsed = parse_json<json>(call.arguments);
  return parsed && parsed->is_object() ? std::move(*parsed) : json::object();
}

std::string named_event(std::string_view name, const json& data) {
  return "event: " + std::string(name) + "\ndata: " + dump_json(data) + "\n\n";
}

}  // namespace redline::api
