#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline::tools {

/// How a family of models writes calls. The format gives the text around a call's name and arguments:
///
///     begin before_name NAME after_name ARGUMENTS after_arguments
///
/// If calls form a list (`next` is not empty), `next` NAME ... is a further call and `end` ends the list; otherwise a
/// further call starts with `begin`. All parts may contain control tokens, if the vocabulary has them.
struct call_format {
  std::string_view name;
  std::string_view begin;  // ordinary text ends with it; its first byte occurs only once in it
  std::string_view before_name;
  std::string_view after_name;  // begins with a byte that no name contains
  std::string_view after_arguments;
  std::string_view next = {};
  std::string_view end = {};
  /// An answer that starts with these bytes and a tool's name is a call, even without `begin`. May be empty.
  std::string_view bare_begin = {};
  /// Arguments are elements, <parameter=NAME>\nVALUE\n</parameter>, instead of a JSON object.
  bool has_elements = false;
  /// Answers have channels, one of which is reasoning (OpenAI's harmony).
  bool has_channels = false;
  /// A call ends the answer.
  bool ends_answer = false;
  /// Ids of calls are nine letters and digits.
  bool has_short_ids = false;

  /// A template's source that contains both of these has this format.
  std::string_view sign;
  std::string_view and_sign = {};
};

/// All formats; the first one that fits a template is right.
[[nodiscard]] std::span<const call_format> all_formats();
[[nodiscard]] const call_format* find_format(std::string_view name);
/// The format that a chat template's source uses; null if it is unknown.
[[nodiscard]] const call_format* recognise_format(std::string_view template_source);

/// Whether a control token with this text is part of the format, and therefore of an answer's text.
[[nodiscard]] bool shows_control(const call_format& format, std::string_view control);

/// The text around one parameter, for formats with elements.
inline constexpr std::string_view element_begin = "<parameter=";
inline constexpr std::string_view element_after_name = ">\n";
inline constexpr std::string_view element_end = "\n</parameter>";

/// The id of the call with this number in an answer; deterministic for a seed. short_ids: see call_format.
[[nodiscard]] std::string make_call_id(std::uint64_t seed, std::uint32_t number, bool short_ids);
/// Nine letters and digits for any id: the id itself if it has that form.
[[nodiscard]] std::string shorten_call_id(std::string_view id);

}  // namespace redline::tools
