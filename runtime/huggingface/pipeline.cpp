#include "runtime/huggingface/pipeline.hpp"

#include <algorithm>
#include <array>

#include "runtime/base/hex.hpp"

namespace redline::huggingface {
namespace {

std::string_view list_of(std::string_view part) {
  if (part == "normalizer") return "normalizers";
  return part == "pre_tokenizer" ? "pretokenizers" : "processors";
}

// The parser limits the depth of this recursion.
result<void> append_steps(const json_object& step, std::string_view list, std::vector<json_object>& out) {
  REDLINE_TRY_ASSIGN(const std::string type, step.text("type"));
  if (type != "Sequence") {
    out.push_back(step);
    return {};
  }
  REDLINE_TRY_ASSIGN(const json* inner, step.array(list));
  for (std::size_t i = 0; i < inner->size(); ++i) {
    const std::string path = step.path_of(list) + "[" + std::to_string(i) + "]";
    REDLINE_TRY_ASSIGN(const json_object each, json_object::of((*inner)[i], step.file(), path));
    REDLINE_TRY(append_steps(each, list, out));
  }
  return {};
}

/// Expressions write line ends as escapes or literally; this converts them to escapes.
std::string with_escapes(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

result<std::string> pattern_text(const json_object& step) {
  REDLINE_TRY_ASSIGN(const json_object pattern, step.object("pattern"));
  if (!pattern.has("Regex")) {
    REDLINE_TRY_ASSIGN(const std::string text, pattern.text("String"));
    return "'" + with_escapes(text) + "'";
  }
  REDLINE_TRY_ASSIGN(const std::string expression, pattern.text("Regex"));
  return with_escapes(expression);
}

result<std::string> split_text(const json_object& step) {
  REDLINE_TRY_ASSIGN(const std::string pattern, pattern_text(step));
  REDLINE_TRY_ASSIGN(const std::string behavior, step.text("behavior"));
  REDLINE_TRY_ASSIGN(const bool invert, step.flag_or("invert", false));
  return "Split(" + pattern + (behavior == "Isolated" ? "" : ", " + behavior) + (invert ? ", inverted)" : ")");
}

result<std::string> digits_text(const json_object& step) {
  REDLINE_TRY_ASSIGN(const bool single, step.flag_or("individual_digits", false));
  return std::string(single ? "Digits(single)" : "Digits(runs)");
}

result<std::string> byte_level_text(const json_object& step) {
  REDLINE_TRY_ASSIGN(const bool prefix, step.flag_or("add_prefix_space", true));
  REDLINE_TRY_ASSIGN(const bool words, step.flag_or("use_regex", true));
  return std::string(words ? "ByteLevel(words" : "ByteLevel(bytes") + (prefix ? ", prefix)" : ")");
}

result<std::string> replace_text(const json_object& step) {
  REDLINE_TRY_ASSIGN(const std::string pattern, pattern_text(step));
  REDLINE_TRY_ASSIGN(const std::string content, step.text("content"));
  return "Replace(" + pattern + ", '" + content + "')";
}

result<std::string> prepend_text(const json_object& step) {
  REDLINE_TRY_ASSIGN(const std::string text, step.text("prepend"));
  return "Prepend('" + text + "')";
}

result<std::string> metaspace_text(const json_object& step) {
  REDLINE_TRY_ASSIGN(const std::string blank, step.text("replacement"));
  REDLINE_TRY_ASSIGN(const bool prefix, step.flag_or("add_prefix_space", true));  // the older name of the scheme
  REDLINE_TRY_ASSIGN(const std::string scheme, step.text_or("prepend_scheme", prefix ? "always" : "never"));
  REDLINE_TRY_ASSIGN(const bool split, step.flag_or("split", true));
  return "Metaspace('" + blank + "', " + scheme + (split ? ", split)" : ")");
}

struct step_kind {
  std::string_view type;
  result<std::string> (*text)(const json_object& step);
};
constexpr auto step_kinds = std::to_array<step_kind>({{"Split", split_text},
                                                      {"Digits", digits_text},
                                                      {"ByteLevel", byte_level_text},
                                                      {"Replace", replace_text},
                                                      {"Prepend", prepend_text},
                                                      {"Metaspace", metaspace_text}});

result<std::string> step_text(const json_object& step) {
  REDLINE_TRY_ASSIGN(const std::string type, step.text("type"));
  const auto it = std::find_if(step_kinds.begin(), step_kinds.end(), [&](const auto& k) { return k.type == type; });
  return it == step_kinds.end() ? type : it->text(step);
}

/// Shows a line of describe_steps in a message.
std::string show_steps(const std::string& line) { return line.empty() ? "nothing" : quote_bytes(line); }

// The expressions of the models' tokenizer.json files for what text::pretokenizer does under these names.
#define GPT2_WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3_WORDS(digits) \
  CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL
#define QWEN35_WORDS \
  CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" TAIL
#define SEED_WORDS \
  CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CASED_WORDS(suffix, digits)                                                                              \
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+" suffix             \
  "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*" suffix "|" digits \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" TAIL
#define DEEPSEEK3_WORDS                                                                               \
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+" \
  "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" TAIL

#define CASED_LETTERS                                                                                                                                                                                              \
  "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-"                                             \
  "ὅὈ-"                                                                                                                                                                                                        \
  "Ὅ"                                                                                                                                                                                                            \
  "ὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-" \
  "ꝯꝱ-"                                                                                                                                                                                                        \
  "ꞇ"                                                                                                                                                                                                            \
  "Ꞌ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"

struct known_line {
  std::string_view name;
  std::string_view line;
  bool whole_pieces_first = false;  // as text::pretokenizer_kind defines it for this name
};
constexpr auto byte_level_lines = std::to_array<known_line>({
    {"qwen2", "Split(" LLAMA3_WORDS("\\p{N}") "), ByteLevel(bytes)"},
    {"qwen35", "Split(" QWEN35_WORDS "), ByteLevel(bytes)"},
    {"llama-bpe", "Split(" LLAMA3_WORDS("\\p{N}{1,3}") "), ByteLevel(bytes)", true},
    {"glm4", "Split(" LLAMA3_WORDS("\\p{N}{1,3}") "), ByteLevel(bytes)"},
    {"gpt-4o", "Split(" CASED_WORDS(CONTRACTION "?", "\\p{N}{1,3}") "), ByteLevel(bytes)"},
    {"tekken", "Split(" CASED_WORDS("", "\\p{N}") "), ByteLevel(bytes)", true},
    {"seed-coder", "Split(" SEED_WORDS "), ByteLevel(bytes)"},
    {"gpt-2", "ByteLevel(words)"},
    {"gpt-2", "Split(" GPT2_WORDS "), ByteLevel(bytes)"},
    {"starcoder", "Digits(single), ByteLevel(words)"},
    {"deepseek-coder",
     "Split([\\r\\n]), Split(\\s?\\p{L}+), Split(\\s?\\p{P}+), Split([一-龥ࠀ-一가-퟿]+), Digits(single), "
     "ByteLevel(bytes)"},
    {"deepseek-llm",
     "Split([\\r\\n]), Split(\\s?[" CASED_LETTERS "]+), Split(\\s?[!-/:-~！-／：-～‘-‟　-。]+), Split(\\s+$), "
     "Split([一-龥ࠀ-一가-퟿]+), Digits(single), ByteLevel(bytes)"},
    {"deepseek-v3",
     "Split(\\p{N}{1,3}), Split([一-龥぀-ゟ゠-ヿ]+), Split(" DEEPSEEK3_WORDS "), ByteLevel(bytes)"},
});
#undef CASED_LETTERS
#undef DEEPSEEK3_WORDS
#undef CASED_WORDS
#undef SEED_WORDS
#undef QWEN35_WORDS
#undef LLAMA3_WORDS
#undef TAIL
#undef CONTRACTION
#undef GPT2_WORDS

/// "Removed, inverted" keeps the matches instead of the text between them. A lone expression leaves no text between its
/// matches, so the result is the same.
std::string without_inversion(std::string line) {
  constexpr std::string_view mark = ", Removed, inverted)";
  if (const std::size_t at = line.find(mark); at != std::string::npos && line.find("Split(", 1) == std::string::npos) {
    line.replace(at, mark.size(), ")");
  }
  return line;
}

struct blank_lines {
  std::string_view normalizer;
  std::string_view pre_tokenizer;
  bool space_prefix;
};
// "first" puts the space before the text only, "always" also after every special token. A GGUF file has one flag for
// both, which readers take as "always".
constexpr auto blank_styles = std::to_array<blank_lines>({
    {"Prepend('▁'), Replace(' ', '▁')", "", true},
    {"Replace(' ', '▁')", "", false},
    {"", "Metaspace('▁', first)", true},
    {"", "Metaspace('▁', always)", true},
    {"", "Metaspace('▁', never)", false},
});

}  // namespace

result<std::vector<json_object>> read_steps(const json_object& tokenizer, std::string_view part) {
  std::vector<json_object> steps;
  if (!tokenizer.has(part)) return steps;
  REDLINE_TRY_ASSIGN(const json_object root, tokenizer.object(part));
  REDLINE_TRY(append_steps(root, list_of(part), steps));
  return steps;
}

result<std::string> describe_steps(const json_object& tokenizer, std::string_view part) {
  REDLINE_TRY_ASSIGN(const std::vector<json_object> steps, read_steps(tokenizer, part));
  std::string line;
  for (const json_object& step : steps) {
    REDLINE_TRY_ASSIGN(const std::string text, step_text(step));
    line += (line.empty() ? "" : ", ") + text;
  }
  return line;
}

result<std::string> byte_level_name(const json_object& tokenizer) {
  REDLINE_TRY_ASSIGN(const std::string normalizer, describe_steps(tokenizer, "normalizer"));
  // A GGUF file cannot request NFC either; nearly all text already has that form.
  if (!normalizer.empty() && normalizer != "NFC") {
    return tokenizer.unsupported("normalizer", "expected none or 'NFC', found " + show_steps(normalizer));
  }
  REDLINE_TRY_ASSIGN(const std::string line, describe_steps(tokenizer, "pre_tokenizer"));
  const std::string known = without_inversion(line);
  REDLINE_TRY_ASSIGN(const json_object model, tokenizer.object("model"));
  REDLINE_TRY_ASSIGN(const bool whole_pieces_first, model.flag_or("ignore_merges", false));
  const known_line* cuts = nullptr;
  for (const known_line& candidate : byte_level_lines) {
    if (candidate.line != known) continue;
    if (candidate.whole_pieces_first == whole_pieces_first) return std::string(candidate.name);
    cuts = &candidate;
  }
  if (cuts == nullptr) {
    std::string names;
    for (const known_line& l : byte_level_lines) {
      if (names.find(l.name) == std::string::npos) names += (names.empty() ? "" : ", ") + std::string(l.name);
    }
    return tokenizer.unsupported("pre_tokenizer",
                                 "expected the pre-tokenizer of one of " + names + ", found " + show_steps(line));
  }
  return model.unsupported("ignore_merges", "expected " + std::string(whole_pieces_first ? "false" : "true") +
                                                " with a pre-tokenizer of " + std::string(cuts->name));
}

result<bool> adds_space_prefix(const json_object& tokenizer) {
  REDLINE_TRY_ASSIGN(const std::string normalizer, describe_steps(tokenizer, "normalizer"));
  REDLINE_TRY_ASSIGN(const std::string cutter, describe_steps(tokenizer, "pre_tokenizer"));
  for (const blank_lines& style : blank_styles) {
    if (style.normalizer == normalizer && style.pre_tokenizer == cutter) return style.space_prefix;
  }
  return tokenizer.unsupported("normalizer", "expected spaces to become U+2581 and no other step, found " +
                                                 show_steps(normalizer) + " and pre_tokenizer " + show_steps(cutter));
}

}  // namespace redline::huggingface
