#include "actors/http/shapes/openai/redline_object.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "actors/http/shapes/openai/message_reader.hpp"

namespace redline::api {
namespace {

constexpr std::pair<std::string_view, draft::method> methods[] = {
    {"regular", draft::method::regular},
    {"lookup", draft::method::lookup},
    {"assisted", draft::method::assisted},
    {"blazedit", draft::method::blazedit},
    {"prediction", draft::method::prediction},
    {"auto", draft::method::automatic},
    {"mtp", draft::method::mtp},
};

void read_method(field_reader& fields, const request_limits& limits, speculation_request& out) {
  const auto name = fields.text("method", limits.name_bytes_max);
  if (!name) return;
  std::vector<std::string_view> names;
  for (const auto& [known, method] : methods) {
    if (*name == known) {
      out.method = method;
      return;
    }
    names.push_back(known);
  }
  std::string message = "'" + fields.path_of("method") +
                        "' must be one of regular, lookup, assisted, blazedit, "
                        "prediction, auto and mtp, found '" +
                        name->substr(0, 64) + "'.";
  const auto meant = nearest(*name, names);
  if (!meant.empty()) message += " Did you mean '" + std::string(meant) + "'?";
  fields.refuse("method", std::move(message));
}

void read_speculation(const json& given, std::optional<api_error>& error, const request_limits& limits,
                      speculation_request& out) {
  static constexpr std::string_view known[] = {
      "method",      "draft_tokens_max",        "confidence_min", "micro_draft_tokens",
      "max_num_run", "max_matching_ngram_size", "recognise"};
  field_reader fields(given, "redline.speculation", error);
  fields.allow_only(known);
  read_method(fields, limits, out);
  const auto count = [&fields](std::string_view name, std::int64_t max) -> std::optional<std::uint32_t> {
    const auto n = fields.integer(name, 1, max);
    return n ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
  };
  out.draft_tokens_max = count("draft_tokens_max", 512);
  out.micro_draft_tokens = count("micro_draft_tokens", 512);
  out.max_num_run = count("max_num_run", 16);
  out.max_matching_ngram_size = count("max_matching_ngram_size", 64);
  if (const auto confidence = fields.number("confidence_min", 0, 1)) {
    out.confidence_min = static_cast<float>(*confidence);
  }
  out.recognise = fields.boolean("recognise").value_or(true);
  if (out.method == draft::method::blazedit && out.draft_tokens_max) {
    fields.refuse("draft_tokens_max",
                  "'redline.speculation.draft_tokens_max' does not apply to blazedit, whose drafts are bounded by "
                  "'micro_draft_tokens' and 'max_num_run'.");
  }
}

/// redline.copy: the name of a trust, or an object that contains it.
void read_copy(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
               generation_request& out) {
  static constexpr std::string_view known[] = {"trust", "spans", "anchors", "confidence_min", "probability_min"};
  static constexpr std::string_view trusts[] = {"off", "forced", "verified", "auto"};
  const json* given = fields.find("copy");
  if (!given) return;
  copy_request copy;
  const auto read_trust = [&](field_reader& from, std::string_view name, const std::string& value) {
    if (std::find(std::begin(trusts), std::end(trusts), value) == std::end(trusts)) {
      from.refuse(name, "'" + from.path_of(name) + "' must be one of off, forced, verified and auto, found '" +
                            value.substr(0, 64) + "'.");
    }
    copy.trust = value;
  };
  if (given->is_string()) {
    read_trust(fields, "copy", given->get_ref<const std::string&>());
  } else if (given->is_object()) {
    field_reader inner(*given, fields.path_of("copy"), error);
    inner.allow_only(known);
    if (const auto trust = inner.text("trust", limits.name_bytes_max)) read_trust(inner, "trust", *trust);
    if (const auto spans = inner.text("spans", limits.name_bytes_max)) {
      copy.line_spans = *spans != "tokens";
      copy.token_spans = *spans != "lines";
      if (*spans != "lines" && *spans != "tokens" && *spans != "both") {
        inner.refuse("spans", "'" + inner.path_of("spans") + "' must be one of lines, tokens and both, found '" +
                                  spans->substr(0, 64) + "'.");
      }
    }
    copy.anchors = inner.boolean("anchors").value_or(false);
    if (copy.anchors && !copy.line_spans)
      inner.refuse("anchors", "'" + inner.path_of("anchors") + "' needs spans of lines.");
    if (const auto sure = inner.number("confidence_min", 0, 1)) copy.confidence_min = static_cast<float>(*sure);
    if (const auto least = inner.number("probability_min", 0, 1)) copy.probability_min = static_cast<float>(*least);
  } else {
    return fields.refuse_type("copy", "a string or an object", *given);
  }
  if (copy.trust != "off") out.copy = std::move(copy);
}

/// redline.files: texts, or objects with "content".
void read_files(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                generation_request& out) {
  const json* list = fields.array("files", limits.files_max);
  if (list && !out.copy) return fields.refuse("files", "'redline.files' needs 'redline.copy'.");
  if (!out.copy) return;
  std::size_t bytes = 0;
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const std::string name = indexed("files", i);
    const json* text = &(*list)[i];
    if (text->is_object()) {
      static constexpr std::string_view known[] = {"content", "name"};
      field_reader inner(*text, fields.path_of(name), error);
      inner.allow_only(known);
      static_cast<void>(inner.text("name", limits.name_bytes_max));
      text = inner.find("content");
    }
    if (!text || !text->is_string())
      return fields.refuse(name, "'" + fields.path_of(name) + "' must be a string or an object with 'content'.");
    bytes += text->get_ref<const std::string&>().size();
    out.copy->files.push_back(text->get_ref<const std::string&>());
  }
  if (bytes > limits.text_bytes_max) {
    fields.refuse("files",
                  "'redline.files' must have at most " + std::to_string(limits.text_bytes_max) + " bytes in total.");
  }
  if (out.copy->files.empty() && out.prediction) out.copy->files.push_back(*out.prediction);
  if (out.copy->files.empty())
    fields.refuse("files", "'redline.copy' needs 'redline.files' or a 'prediction' to copy from.");
}

void read_eviction(const json& given, std::optional<api_error>& error, const request_limits& limits,
                   eviction_request& out) {
  static constexpr std::string_view known[] = {"policy", "n_keep", "n_discard", "n_ctx"};
  field_reader fields(given, "redline.eviction", error);
  fields.allow_only(known);
  if (const auto name = fields.text("policy", limits.name_bytes_max)) {
    out.policy = kv::parse_eviction_policy(*name);
    if (!out.policy) {
      fields.refuse("policy", "'redline.eviction.policy' must be one of off, reevaluate, shift and lazy, found '" +
                                  name->substr(0, 64) + "'.");
    }
  }
  const auto count = [&fields](std::string_view name, std::int64_t min) -> std::optional<std::uint32_t> {
    const auto n = fields.integer(name, min, 1 << 24);
    return n ? std::optional(static_cast<std::uint32_t>(*n)) : std::nullopt;
  };
  out.n_keep = count("n_keep", 0);
  out.n_discard = count("n_discard", 1);
  out.n_ctx = count("n_ctx", 2);
}

/// redline.resume_text: a text, or one for each choice.
void read_resume_text(field_reader& fields, const request_limits& limits, generation_request& out) {
  const json* given = fields.find("resume_text");
  if (!given) return;
  const bool is_list = given->is_array();
  if (!is_list && !given->is_string())
    return fields.refuse_type("resume_text", "a string or an array of strings", *given);
  if (is_list && given->size() > limits.answers_max) {
    return fields.refuse("resume_text", "'redline.resume_text' has " + std::to_string(given->size()) +
                                            " entries, at most " + std::to_string(limits.answers_max) +
                                            " are allowed.");
  }
  const std::size_t count = is_list ? given->size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const json& entry = is_list ? (*given)[i] : *given;
    if (!entry.is_string()) return fields.refuse_type(indexed("resume_text", i), "a string", entry);
    out.resume_texts.push_back(entry.get_ref<const std::string&>());
  }
}

}  // namespace

void read_redline(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                  generation_request& out) {
  static constexpr std::string_view known[] = {"speculation", "copy", "files", "eviction", "resume_text", "trace"};
  const json* ours = fields.object("redline");
  if (!ours) return;
  field_reader inner(*ours, "redline", error);
  inner.allow_only(known);
  if (const json* speculation = inner.object("speculation")) {
    read_speculation(*speculation, error, limits, out.speculation);
  }
  read_copy(inner, error, limits, out);
  read_files(inner, error, limits, out);
  if (const json* eviction = inner.object("eviction")) read_eviction(*eviction, error, limits, out.eviction);
  read_resume_text(inner, limits, out);
  out.trace = inner.boolean("trace").value_or(false);
}

}  // namespace redline::api
