#include "actors/cli/lsp/rpc_message.hpp"

#include <limits>
#include <optional>
#include <utility>

#include "runtime/base/hex.hpp"
#include "runtime/base/strict_json.hpp"

namespace redline::actors::cli::lsp {
namespace {

std::optional<unsigned> escaped_unit(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  unsigned unit = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const int digit = hex_digit(text[i]);
    if (digit < 0) return std::nullopt;
    unit = unit * 16 + static_cast<unsigned>(digit);
  }
  return unit;
}

bool is_high(unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; }

refused_message refuse(json id, std::string why) {
  return {std::move(id), {rpc_code::invalid_request, std::move(why)}};
}

rpc_error bad_params(std::string why) { return {rpc_code::invalid_params, std::move(why)}; }

}  // namespace

std::string mend_surrogates(std::string_view json_text) {
  std::string out;
  out.reserve(json_text.size());
  for (std::size_t at = 0; at < json_text.size();) {
    if (json_text[at] != '\\') {
      out.push_back(json_text[at++]);
      continue;
    }
    const auto unit = escaped_unit(json_text, at);
    if (!unit) {  // an escape of two characters
      out.append(json_text.substr(at, 2));
      at += 2;
      continue;
    }
    const auto next = escaped_unit(json_text, at + 6);
    const bool is_pair = is_high(*unit) && next && is_low(*next);
    const bool is_half = !is_pair && (is_high(*unit) || is_low(*unit));
    const std::size_t taken = is_pair ? 12 : 6;
    out.append(is_half ? std::string_view("\\ufffd") : json_text.substr(at, taken));
    at += taken;
  }
  return out;
}

outcome<rpc_message, refused_message> parse_rpc(std::string_view text) {
  auto parsed = parse_json<json>(text);
  if (!parsed && text.find("\\u") != std::string_view::npos) parsed = parse_json<json>(mend_surrogates(text));
  if (!parsed) return refused_message{nullptr, {rpc_code::parse_error, parsed.error().context}};
  const json& all = *parsed;
  if (all.is_array()) return refuse(nullptr, "expected one message, found an array; batches are not supported");
  if (!all.is_object()) return refuse(nullptr, "expected a JSON object, found " + std::string(all.type_name()));
  const json& id = member(all, "id");
  const bool has_id = id.is_number_integer() || id.is_string();
  const json shown_id = has_id ? id : json();
  if (member(all, "jsonrpc") != "2.0") return refuse(shown_id, "expected \"jsonrpc\": \"2.0\"");
  if (!has_id && !id.is_null()) return refuse(nullptr, "'id' must be an integer or a string");
  rpc_message out;
  out.id = shown_id;
  if (!all.contains("method")) {
    if (!all.contains("result") && !all.contains("error"))
      return refuse(shown_id, "expected a 'method', 'result' or 'error'");
    out.what = rpc_message::kind::response;
    out.failed = all.contains("error");
    if (!out.failed) out.result = member(all, "result");
    return out;
  }
  if (!member(all, "method").is_string()) return refuse(shown_id, "'method' must be a string");
  out.method = text_of(member(all, "method"));
  out.what = has_id ? rpc_message::kind::request : rpc_message::kind::notification;
  out.params = member(all, "params");
  if (!out.params.is_structured() && !out.params.is_null()) {
    return refuse(shown_id, "'params' must be an object or an array");
  }
  return out;
}

json rpc_request(std::int64_t id, std::string_view method, json params) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
}
json rpc_notification(std::string_view method, json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}
json rpc_result(const json& id, json result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}; }
json rpc_refusal(const json& id, const rpc_error& why) {
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"error", {{"code", static_cast<std::int32_t>(why.code)}, {"message", why.message}}}};
}

outcome<text::text_position, rpc_error> position_of(const json& value) {
  text::text_position out;
  for (const auto& [name, into] : {std::pair{"line", &out.line}, std::pair{"character", &out.character}}) {
    const json& number = member(value, name);
    if (!number.is_number_unsigned() && !(number.is_number_integer() && number.get<std::int64_t>() >= 0)) {
      return bad_params("a position: expected '" + std::string(name) + "' to be a number of at least 0");
    }
    // Positions after the end mean the end, including those larger than any text.
    *into = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(number.get<std::uint64_t>(), std::numeric_limits<std::uint32_t>::max()));
  }
  return out;
}

outcome<text::position_range, rpc_error> range_of(const json& value) {
  const auto begin = position_of(member(value, "start"));
  if (!begin) return begin.error();
  const auto end = position_of(member(value, "end"));
  if (!end) return end.error();
  return text::position_range{*begin, *end};
}

json to_json(text::text_position at) { return {{"line", at.line}, {"character", at.character}}; }
json to_json(const text::position_range& range) {
  return {{"start", to_json(range.begin)}, {"end", to_json(range.end)}};
}

}  // namespace redline::actors::cli::lsp
