#include "actors/http/shapes/openai/edit_request.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/shapes/openai/request.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::api {
namespace {

constexpr std::int64_t version_max = std::int64_t{1} << 53;  // every JSON reader keeps these exactly
constexpr std::int64_t offset_max = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t edit_tokens_default = 64;

/// Refuses the request if the member is missing.
template<class T>
T required(field_reader& fields, std::string_view name, std::optional<T> value) {
  if (!value) fields.refuse(name, "'" + fields.path_of(name) + "' is required.");
  return value ? std::move(*value) : T{};
}

bool is_good_path(std::string_view path, const actors::edit_limits& limits) {
  if (path.empty() || path.size() > limits.path_bytes_max) return false;
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return utf8::valid_prefix_bytes(path) == path.size();  // otherwise two paths could look the same
}

std::string path_complaint(std::string_view name, const actors::edit_limits& limits) {
  return "'" + std::string(name) + "' must have 1 to " + std::to_string(limits.path_bytes_max) +
         " bytes of UTF-8 and no control characters.";
}

actors::put_file read_file(field_reader& fields, const actors::edit_limits& limits) {
  actors::put_file file;
  file.text = required(fields, "text", fields.text("text", limits.file_bytes_max));
  file.version = fields.integer("version", 0, version_max).value_or(1);
  return file;
}

actors::file_place read_position(field_reader& fields) {
  const auto line = required(fields, "line", fields.integer("line", 0, offset_max));
  const auto character = required(fields, "character", fields.integer("character", 0, offset_max));
  return {.line = static_cast<std::uint32_t>(line), .character = static_cast<std::uint32_t>(character)};
}

actors::file_place byte_place(std::int64_t byte) { return {.is_byte = true, .byte = static_cast<std::uint32_t>(byte)}; }

/// {"line", "character"} or {"byte"}.
std::optional<actors::file_place> read_place(field_reader& fields, std::string_view name,
                                             std::optional<api_error>& error) {
  const json* given = fields.object(name);
  if (!given) return std::nullopt;
  static constexpr std::string_view known[] = {"line", "character", "byte"};
  field_reader inner(*given, fields.path_of(name), error);
  inner.allow_only(known);
  if (const auto byte = inner.integer("byte", 0, offset_max)) return byte_place(*byte);
  return read_position(inner);
}

actors::file_edit read_edit(const json& given, const std::string& path, const actors::edit_limits& limits,
                            std::optional<api_error>& error) {
  static constexpr std::string_view known[] = {"range", "bytes", "text"};
  static constexpr std::string_view ends[] = {"start", "end"};
  actors::file_edit edit;
  field_reader fields(given, path, error);
  fields.allow_only(known);
  edit.text = required(fields, "text", fields.text("text", limits.file_bytes_max));
  const json* range = fields.object("range");
  const json* bytes = fields.object("bytes");
  if (range && bytes) fields.refuse("bytes", "'" + path + "' has both 'range' and 'bytes': give one of them.");
  if (range) {
    field_reader inner(*range, path + ".range", error);
    inner.allow_only(ends);
    const auto position = [&](std::string_view name) {
      const json* one = inner.object(name);
      if (!one) {
        inner.refuse(name, "'" + inner.path_of(name) + "' is required.");
        return actors::file_place{};
      }
      field_reader at(*one, inner.path_of(name), error);
      return read_position(at);
    };
    const auto begin = position("start");
    edit.where = actors::file_range{begin, position("end")};
  } else if (bytes) {
    field_reader inner(*bytes, path + ".bytes", error);
    inner.allow_only(ends);
    const auto begin = required(inner, "start", inner.integer("start", 0, offset_max));
    const auto end = required(inner, "end", inner.integer("end", 0, offset_max));
    edit.where = actors::file_range{byte_place(begin), byte_place(end)};
  }
  return edit;
}

constexpr std::pair<std::string_view, kv::splice_policy> policies[] = {
    {"exact", kv::splice_policy::exact}, {"pie", kv::splice_policy::pie}, {"conflict", kv::splice_policy::conflict}};

cache_request read_cache(field_reader& fields, std::optional<api_error>& error) {
  static constexpr std::string_view known[] = {"policy", "healing"};
  cache_request out;
  const json* given = fields.object("cache");
  if (!given) return out;
  field_reader inner(*given, "cache", error);
  inner.allow_only(known);
  out.heals = inner.boolean("healing").value_or(true);
  const auto wanted = inner.text("policy", 16);
  if (!wanted) return out;
  for (const auto& [name, policy] : policies) {
    if (name != *wanted) continue;
    out.policy = policy;
    return out;
  }
  inner.refuse("policy", "'cache.policy' must be one of exact, pie and conflict.");
  return out;
}

/// Reads how to make the answer.
checked<generation_request> read_session_generation(const json& body, endpoint from) {
  auto out = read_generation(body, from, false);
  if (!out) return out;
  if (const auto given = body.find("temperature"); given == body.end() || given->is_null())
    out->sampling.temperature = 0;
  if (!out->cache_salt.empty()) {
    return bad_field("cache_salt", "'cache_salt' is not supported here: a session does not share its KV.",
                     "unsupported_parameter");
  }
  if (out->answers_per_prompt() != 1) {
    return bad_field("n", "'n' and 'best_of' other than 1 are not supported: a session has one sequence.");
  }
  if (out->echo) return bad_field("echo", "'echo' is not supported here: the prompt is the session's files.");
  static constexpr std::string_view own[] = {"path", "version", "position", "mode", "instruction"};
  std::erase_if(out->ignored, [](const std::string& name) {
    return std::find(std::begin(own), std::end(own), name) != std::end(own);
  });
  return out;
}

}  // namespace

std::string_view name_of(kv::splice_policy policy) {
  for (const auto& [name, known] : policies) {
    if (known == policy) return name;
  }
  return "unknown";
}

checked<open_session_request> parse_open_session(std::string_view body, const actors::edit_limits& limits) {
  static constexpr std::string_view known[] = {"model", "files", "position_encoding", "idle_seconds", "cache"};
  auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  open_session_request out;
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  fields.allow_only(known);
  out.model = fields.text("model", request_limits{}.name_bytes_max).value_or("");
  out.idle_seconds_max = fields.integer("idle_seconds", 1, limits.idle_seconds_max).value_or(limits.idle_seconds_max);
  out.cache = read_cache(fields, error);
  if (const auto units = fields.text("position_encoding", 16)) {
    if (*units != "utf-8" && *units != "utf-16") {
      fields.refuse("position_encoding", "'position_encoding' must be utf-8 or utf-16.");
    }
    out.units = *units == "utf-8" ? text::position_encoding::utf8 : text::position_encoding::utf16;
  }
  std::size_t bytes = 0;
  if (const json* files = fields.array("files", limits.files_max)) {
    static constexpr std::string_view known_of_file[] = {"path", "text", "version"};
    for (std::size_t i = 0; i < files->size() && !error; ++i) {
      const std::string at = indexed("files", i);
      if (!(*files)[i].is_object()) {
        fields.refuse_type(at, "an object", (*files)[i]);
        break;
      }
      field_reader one((*files)[i], at, error);
      one.allow_only(known_of_file);
      std::string path = required(one, "path", one.text("path", limits.path_bytes_max));
      if (!is_good_path(path, limits)) one.refuse("path", path_complaint(one.path_of("path"), limits));
      for (const auto& other : out.files) {
        if (other.path == path)
          one.refuse("path", "'" + one.path_of("path") + "' names a file that is already in 'files'.");
      }
      out.files.push_back(read_file(one, limits));
      out.files.back().path = std::move(path);
      bytes += out.files.back().text.size();
    }
  }
  if (bytes > limits.session_bytes_max) {
    fields.refuse("files", "'files' has more than " + std::to_string(limits.session_bytes_max) + " bytes of text.");
  }
  if (error) return std::move(*error);
  return out;
}

checked<actors::put_file> parse_put_file(std::string path, std::string_view body, const actors::edit_limits& limits) {
  static constexpr std::string_view known[] = {"text", "version"};
  auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  fields.allow_only(known);
  actors::put_file file = read_file(fields, limits);
  if (!is_good_path(path, limits)) fields.refuse("path", path_complaint("path", limits));
  file.path = std::move(path);
  if (error) return std::move(*error);
  return file;
}

checked<actors::patch_file> parse_patch(std::string path, std::string_view body, const actors::edit_limits& limits) {
  static constexpr std::string_view known[] = {"version", "base_version", "edits", "cursor"};
  auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  actors::patch_file out;
  out.path = std::move(path);
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  fields.allow_only(known);
  out.next = required(fields, "version", fields.integer("version", 1, version_max));
  out.base = fields.integer("base_version", 0, version_max).value_or(out.next - 1);
  out.cursor = read_place(fields, "cursor", error);
  const json* edits = fields.array("edits", limits.edits_max);
  if (!edits) fields.refuse("edits", "'edits' is required.");
  for (std::size_t i = 0; edits && i < edits->size() && !error; ++i) {
    const std::string at = indexed("edits", i);
    if (!(*edits)[i].is_object()) {
      fields.refuse_type(at, "an object", (*edits)[i]);
      break;
    }
    out.edits.push_back(read_edit((*edits)[i], at, limits, error));
  }
  if (error) return std::move(*error);
  return out;
}

checked<complete_request> parse_complete(std::string_view body, const actors::edit_limits& limits) {
  using actors::completion_mode;
  auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  auto how = read_session_generation(*parsed, endpoint::completions);
  if (!how) return how.error();
  complete_request out{.how = std::move(*how)};
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  if (!fields.find("max_tokens") && !fields.find("max_completion_tokens")) {
    out.how.tokens_max = edit_tokens_default;
  }
  out.where.path = required(fields, "path", fields.text("path", limits.path_bytes_max));
  out.where.version = fields.integer("version", 0, version_max);
  out.where.place = read_place(fields, "position", error);
  if (const auto mode = fields.text("mode", 16)) {
    if (*mode == "line")
      out.where.mode = completion_mode::line;
    else if (*mode == "text")
      out.where.mode = completion_mode::text;
    else if (*mode == "fim")
      out.where.mode = completion_mode::fim;
    else
      fields.refuse("mode", "'mode' must be one of line, text and fim.");
  }
  if (error) return std::move(*error);
  return out;
}

checked<edit_request> parse_edit(std::string_view body, const actors::edit_limits& limits) {
  auto parsed = parse_body(body);
  if (!parsed) return parsed.error();
  auto how = read_session_generation(*parsed, endpoint::chat);
  if (!how) return how.error();
  edit_request out{.how = std::move(*how)};
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  out.path = required(fields, "path", fields.text("path", limits.path_bytes_max));
  out.version = fields.integer("version", 0, version_max);
  out.instruction = required(fields, "instruction", fields.text("instruction", limits.instruction_bytes_max));
  if (error) return std::move(*error);
  return out;
}

}  // namespace redline::api
