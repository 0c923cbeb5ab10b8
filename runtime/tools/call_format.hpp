#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redline::tools {

/// How a family of models writes calls. Of a call the format says what stands around name and arguments:
///
///     begin before_name NAME after_name ARGUMENTS after_arguments
///
/// Where calls stand in a list (`next` is not empty), `next` NAME ... is a further call and `end` ends the list; else a
/// further call begins anew with `begin`. In all of them parts may be control tokens, where the vocabulary has them.
struct call_format {
  std::string_view name;
  std::string_view begin;  // ordinary text ends with it; its first byte is in it once
  std::string_view before_name;
  std::string_view after_name;  // begins with a byte that no name has
  std::string_view after_arguments;
  std::string_view next = {};
  std::string_view end = {};
  /// Without `begin`: an answer whose first bytes are these and then a tool's name is a call. Empty: there is no such.
  std::string_view bare_begin = {};
  /// Arguments are elements, <parameter=NAME>\nVALUE\n</parameter>, instead of a JSON object.
  bool has_elements = false;
  /// Answers have channels, of which one is reasoning (OpenAI's harmony).
  bool has_channels = false;
  /// A call ends the answer.
  bool ends_answer = false;
  /// Calls' ids are nine letters and digits.
  bool has_short_ids = false;

  /// A template's source with both of these in it is of this format.
  std::string_view sign;
  std::string_view and_sign = {};
};

/// All formats; of those that fit a template the first is right.
[[nodiscard]] std::span<const call_format> all_formats();
[[nodiscard]] const call_format* find_format(std::string_view name);
/// The format that a chat template's source speaks; null: none that is known.
[[nodiscard]] const call_format* recognise_format(std::string_view template_source);

/// Whether a control token with this text is part of the format, and so of an answer's text.
[[nodiscard]] bool shows_control(const call_format& format, std::string_view control);

/// What is said of one parameter, for formats with elements.
inline constexpr std::string_view element_begin = "<parameter=";
inline constexpr std::string_view element_after_name = ">\n";
inline constexpr std::string_view element_end = "\n</parameter>";

/// The id of the call with this number in an answer; the same for the same seed. short_ids: see call_format.
[[nodiscard]] std::string make_call_id(std::uint64_t seed, std::uint32_t number, bool short_ids);
/// Nine letters and digits for any id: the id itself where it is so.
[[nodiscard]] std::string shorten_call_id(std::string_view id);

}  // namespace redline::tools
