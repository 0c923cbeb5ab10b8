#include "runtime/text/pretokenizer_table.hpp"

#include <algorithm>
#include <iterator>

// The expressions are those published in the models' tokenizer.json files. tests/runtime/text/pretokenizer_vectors
// compares them with another engine's matches.

namespace redline::text {
namespace {

using patterns = std::string_view[];

// PCRE2's \s also matches U+180E, which Unicode removed from whitespace, and its \p{Han} all marks used in Han texts.
#define SPACE "\\p{wspace}"
#define NEWLINES SPACE "*[\\r\\n]+|"
#define BLANKS SPACE "+(?!\\P{wspace})|" SPACE "+"
// In either case, but without the long s that a case-insensitive match would accept.
#define CONTRACTION "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define SYMBOLS(newlines) " ?[^" SPACE "\\p{L}\\p{N}]+" newlines "*|"
#define LLAMA3_WORDS(digits) CONTRACTION "|" WORD digits "|" SYMBOLS("[\\r\\n]") NEWLINES BLANKS
// Words end before a capital letter: getLength becomes get and Length.
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define CASED_WORDS(suffix) \
  "[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]*[" LOWER "]+" suffix "|[^\\r\\n\\p{L}\\p{N}]?[" UPPER "]+[" LOWER "]*" suffix "|"
#define CASED_TAIL SYMBOLS("[\\r\\n/]") NEWLINES BLANKS
#define GPT2_WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE "\\p{L}\\p{N}]+|" BLANKS
#define CJK "\\x{4E00}-\\x{9FA5}"
#define KANA "\\x{3040}-\\x{30FF}"
#define DEEPSEEK3_WORDS(newlines)                                                                       \
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| " \
  "?[\\p{P}\\p{S}]+" newlines BLANKS

constexpr patterns gpt2 = {GPT2_WORDS};
constexpr patterns llama3 = {LLAMA3_WORDS("\\p{N}{1,3}")};
constexpr patterns qwen2 = {LLAMA3_WORDS("\\p{N}")};
// Letters keep their combining marks.
constexpr patterns qwen35 = {CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" SPACE
                                         "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" NEWLINES BLANKS};
constexpr patterns seed_coder = {CONTRACTION "|" WORD "\\p{N}| ?[^" SPACE "\\p{L}\\p{N}\\r\\n]+|" NEWLINES BLANKS};
constexpr patterns bailing = {CONTRACTION "|" WORD "\\p{N}|" SYMBOLS("[\\r\\n]") SPACE "*[\\r\\n]|" BLANKS};
constexpr patterns ufakzeka = {WORD "\\p{N}|" SYMBOLS("[\\r\\n]") NEWLINES BLANKS};
constexpr patterns laguna = {"[^\\n]+|[\\n]+", LLAMA3_WORDS("\\p{N}")};
constexpr patterns minicpm5 = {"\\p{N}{1,3}", LLAMA3_WORDS("\\p{N}+")};
constexpr patterns gpt4o = {CASED_WORDS("(?:" CONTRACTION ")?") "\\p{N}{1,3}|" CASED_TAIL};
constexpr patterns tekken = {CASED_WORDS("") "\\p{N}|" CASED_TAIL};
constexpr patterns youtu = {
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|"
    "[!\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}"
    "\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|[" CJK KANA "]+",
    CASED_WORDS("(?:" CONTRACTION ")?") "\\p{N}|" CASED_TAIL};
// Like gpt4o, but with spans of Han characters separated.
#define NOT_HAN(set) "(?:(?!\\p{sc:Han})[" set "])"
constexpr patterns kimi_k2 = {"\\p{sc:Han}+|[^\\r\\n\\p{L}\\p{N}]?" NOT_HAN(UPPER) "*" NOT_HAN(
    LOWER) "+(?:" CONTRACTION
           ")?|[^\\r\\n\\p{L}\\p{N}]?" NOT_HAN(UPPER) "+" NOT_HAN(LOWER) "*(?:" CONTRACTION
                                                                         ")?|\\p{N}{1,3}|" SYMBOLS("[\\r\\n]")
                                                                             NEWLINES BLANKS};
#undef NOT_HAN
constexpr patterns starcoder = {"\\p{N}", GPT2_WORDS};
constexpr patterns falcon = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2_WORDS, "[0-9][0-9][0-9]"};
constexpr patterns deepseek_coder = {"[\\r\\n]", SPACE "?\\p{L}+", SPACE "?\\p{P}+",
                                     "[\\x{0800}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+", "\\p{N}"};
// Letters with two cases, from all scripts that have them; then symbols, and ASCII letters again.
#define CASED_LETTERS                                                                                        \
  "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"            \
  "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}"     \
  "\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}"            \
  "\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}"          \
  "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}"          \
  "\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"  \
  "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}" \
  "\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}"           \
  "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}"            \
  "\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}"            \
  "\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}"           \
  "\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}"          \
  "\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"        \
  "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"                     \
  "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
constexpr patterns deepseek_llm = {
    "[\\r\\n]",
    SPACE "?[" CASED_LETTERS "]+",
    SPACE "?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+",
    SPACE "+$",
    "[\\x{0800}-\\x{9FA5}\\x{AC00}-\\x{D7FF}]+",
    "\\p{N}"};
constexpr patterns deepseek3 = {"\\p{N}{1,3}", "[" CJK KANA "]+", DEEPSEEK3_WORDS("[\\r\\n]*|" NEWLINES)};
constexpr patterns spark = {"\\p{N}{1,3}", "[" CJK KANA "]+", DEEPSEEK3_WORDS("|[\\r\\n]|"), "\\p{N}"};
constexpr patterns bloom = {" ?[^(" SPACE "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{0964}\\x{06D4}\\x{060C})]+"};
constexpr patterns viking = {bloom[0], "\\p{N}"};
constexpr patterns unnamed = {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2_WORDS, "\\p{N}+", "[0-9][0-9][0-9]"};

constexpr pretokenizer_kind known[] = {
    {"default", unnamed},
    {"llama-bpe", llama3, true, true},
    {"llama3", llama3, true, true},
    {"llama-v3", llama3, true, true},
    {"falcon3", llama3, true, true},
    {"falcon-h1", llama3, true, true},
    {"pixtral", llama3, true, true},
    {"midm-2.0", llama3, true, true},
    {"lfm2", llama3, true, true},
    {"dbrx", llama3},
    {"smaug-bpe", llama3},
    {"glm4", llama3},
    {"chatglm-bpe", llama3},
    {"minicpm5", minicpm5, true},
    {"llama4", gpt4o},
    {"gpt-4o", gpt4o},
    {"minimax-m2", gpt4o},
    {"kanana2", gpt4o},
    {"talkie", gpt4o},
    {"tekken", tekken, true, true},
    {"youtu", youtu, true},
    {"kimi-k2", kimi_k2},
    {"qwen2", qwen2},
    {"deepseek-r1-qwen", qwen2},
    {"kormo", qwen2},
    {"megrez", qwen2},
    {"stablelm2", qwen2},
    {"hunyuan", qwen2},
    {"solar-open", qwen2},
    {"grok-2", qwen2},
    {"qwen35", qwen35},
    {"seed-coder", seed_coder},
    {"bailingmoe", bailing},
    {"bailingmoe2", bailing},
    {"llada-moe", bailing},
    {"ufakzeka", ufakzeka},
    {"laguna", laguna},
    {"deepseek-coder", deepseek_coder},
    {"deepseek-llm", deepseek_llm},
    {"deepseek-v3", deepseek3},
    {"hunyuan-dense", deepseek3},
    {"joyai-llm", deepseek3},
    {"hy_v4", deepseek3},
    {"spark2_5", spark},
    {"gpt-2", gpt2},
    {"gpt2", gpt2},
    {"phi-2", gpt2},
    {"olmo", gpt2},
    {"mpt", gpt2},
    {"jais", gpt2},
    {"mellum", gpt2},
    {"exaone4", gpt2},
    {"trillion", gpt2},
    {"gigachat", gpt2},
    {"a.x-4.0", gpt2},
    {"granite-docling", gpt2},
    {"falcon", falcon},
    {"starcoder", starcoder},
    {"refact", starcoder},
    {"command-r", starcoder},
    {"smollm", starcoder},
    {"codeshell", starcoder},
    {"exaone", starcoder},
    {"minerva-7b", starcoder},
    {"mellum2", starcoder},
    {"bloom", bloom},
    {"gpt3-finnish", bloom},
    {"poro-chat", bloom},
    {"viking", viking},
};

}  // namespace

const pretokenizer_kind* find_pretokenizer(std::string_view name) {
  const auto* const it =
      std::find_if(std::begin(known), std::end(known), [&](const auto& k) { return k.name == name; });
  return it == std::end(known) ? nullptr : it;
}

std::string known_pretokenizers() {
  std::string names;
  for (const pretokenizer_kind& k : known) names += (names.empty() ? "'" : ", '") + std::string(k.name) + "'";
  return names;
}

}  // namespace redline::text
