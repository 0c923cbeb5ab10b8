#include "runtime/grammar/schema/string_formats.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "runtime/base/assert.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

// RFC 3339, with the number of days in each month.
#define LEAP_YEAR "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define DATE_PATTERN                                                                    \
  "(" LEAP_YEAR                                                                         \
  "-02-29|[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12]" \
  "[0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])))"
#define TIME_PATTERN "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"

// RFC 3339, appendix A: units follow each other without a gap.
#define COUNT "[0-9]{1,9}"
#define MINUTES COUNT "M(" COUNT "S)?"
#define CLOCK "T(" COUNT "H(" MINUTES ")?|" MINUTES "|" COUNT "S)"
#define MONTHS COUNT "M(" COUNT "D)?"
#define DURATION_PATTERN "P(" COUNT "W|" CLOCK "|(" COUNT "D|" MONTHS "|" COUNT "Y(" MONTHS ")?)(" CLOCK ")?)"

// RFC 2673 and RFC 4291, as written in RFC 3986.
#define BYTE_PATTERN "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define IPV4_PATTERN BYTE_PATTERN "\\." BYTE_PATTERN "\\." BYTE_PATTERN "\\." BYTE_PATTERN
#define H16 "[0-9a-fA-F]{1,4}"
#define H16S "(" H16 ":)"
#define LS32 "(" H16 ":" H16 "|" IPV4_PATTERN ")"
#define IPV6_PATTERN                                                                                          \
  "(" H16S "{6}" LS32 "|::" H16S "{5}" LS32 "|(" H16 ")?::" H16S "{4}" LS32 "|(" H16S "{0,1}" H16 ")?::" H16S \
  "{3}" LS32 "|(" H16S "{0,2}" H16 ")?::" H16S "{2}" LS32 "|(" H16S "{0,3}" H16 ")?::" H16 ":" LS32 "|(" H16S \
  "{0,4}" H16 ")?::" LS32 "|(" H16S "{0,5}" H16 ")?::" H16 "|(" H16S "{0,6}" H16 ")?::)"

// RFC 3986, and RFC 3987 with characters beyond ASCII; of those up to U+FFFF.
#define ESCAPED "%[0-9a-fA-F]{2}"
#define NAME_SIGNS "A-Za-z0-9._~!$&'()*+,;=\\-"
#define WIDE "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef"
#define SIGN(MORE) "([" NAME_SIGNS ":@" MORE "]|" ESCAPED ")"
#define AUTHORITY(MORE)                                                                                \
  "(([" NAME_SIGNS ":" MORE "]|" ESCAPED ")*@)?(([" NAME_SIGNS MORE "]|" ESCAPED ")*|\\[" IPV6_PATTERN \
  "\\])(:[0-9]*)"                                                                                      \
  "?"
#define LATER_PATH(MORE) "(/" SIGN(MORE) "*)*"
#define ROOTED(MORE) "//" AUTHORITY(MORE) LATER_PATH(MORE) "|/(" SIGN(MORE) "+" LATER_PATH(MORE) ")?"
#define QUERY(MORE) "(\\?(" SIGN(MORE) "|[/?])*)?(#(" SIGN(MORE) "|[/?])*)?"
#define URI_PATTERN(MORE) "[A-Za-z][A-Za-z0-9+.-]*:(" ROOTED(MORE) "|" SIGN(MORE) "+" LATER_PATH(MORE) ")" QUERY(MORE)
#define REFERENCE_PATTERN(MORE)                                                  \
  "(" URI_PATTERN(MORE) "|(" ROOTED(MORE) "|([" NAME_SIGNS "@" MORE "]|" ESCAPED \
                                          ")+" LATER_PATH(MORE) ")?" QUERY(MORE) ")"

// RFC 6570.
#define VARIABLE_SIGN "([A-Za-z0-9_]|" ESCAPED ")"
#define VARIABLE VARIABLE_SIGN "(\\.?" VARIABLE_SIGN ")*(:[1-9][0-9]{0,3}|\\*)?"
#define TEMPLATE_PATTERN \
  "([^\\x00-\\x20\"'%<>\\\\^`{|}\\x7f-\\u009f]|" ESCAPED "|\\{[+#./;?&]?" VARIABLE "(," VARIABLE ")*\\})*"

// RFC 6901.
#define POINTER_PATTERN "(/([^/~]|~[01])*)*"

// A part of ECMA-262: groups are nested two deep, and classes have the usual ranges.
#define CLASS_SIGN "([\\x20-,./0-9:-@A-Z_`a-z{|}~]|\\\\[dDwWsSnrt\\\\.^$|()\\[\\]{}/-]|a-z|A-Z|0-9)"
#define ATOM \
  "([^\\x00-\\x1f\\\\^$.|?*+()\\[\\]{}/]|\\.|\\\\[dDwWsSnrtfv\\\\.^$|?*+()\\[\\]{}/]|\\[\\^?" CLASS_SIGN "+-?\\])"
#define REPEATED "(([*+?]|\\{[0-9]{1,3},?\\})[?]?)?"
#define OF_ATOMS(MORE) "(" ATOM REPEATED "|\\\\b|[$^]" MORE ")*"
#define GROUP(INSIDE) "|\\((\\?:)?" INSIDE "(\\|" INSIDE ")*\\)" REPEATED
#define REGEX_INSIDE OF_ATOMS(GROUP(OF_ATOMS(GROUP(OF_ATOMS("")))))
#define REGEX_PATTERN REGEX_INSIDE "(\\|" REGEX_INSIDE ")*"

// CSS 2.1.
#define COLOR_PATTERN                                                                                                \
  "(#([0-9a-fA-F]{3}){1,2}|aqua|black|blue|fuchsia|gray|green|lime|maroon|navy|olive|orange|purple|red|silver|teal|" \
  "white|yellow)"

// RFC 1123: a label has at most 63 letters, digits and hyphens, and a name 253 characters. To avoid counting, the first
// label may have 63 characters and up to seven others 26. Labels that only IDNA defines ("xn--...") are left out.
#define ALNUM "[A-Za-z0-9]"
// The parameters are the length limit of the label less 4 and less 5.
#define LABEL(BUT_THREE, BUT_FOUR)                                                                                  \
  ALNUM "([A-Za-z0-9-]?" ALNUM "|[A-Za-z0-9-]" ALNUM "[A-Za-z0-9-]{0," BUT_THREE "}" ALNUM "|(" ALNUM "-|--)" ALNUM \
        "([A-Za-z0-9-]{0," BUT_FOUR "}" ALNUM ")?)?"
#define HOSTNAME_PATTERN LABEL("59", "58") "(\\." LABEL("22", "21") "){0,7}"

constexpr std::array<std::pair<std::string_view, std::string_view>, 20> patterns = {{
    {"date", DATE_PATTERN},
    {"time", TIME_PATTERN},
    {"date-time", DATE_PATTERN "T" TIME_PATTERN},
    {"duration", DURATION_PATTERN},
    {"email", "[A-Za-z0-9_+-]+(\\.[A-Za-z0-9_+-]+)*@(" ALNUM "([A-Za-z0-9-]*" ALNUM ")?\\.)+[A-Za-z]{2,24}"},
    {"hostname", HOSTNAME_PATTERN},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    {"uri", URI_PATTERN("")},
    {"uri-reference", REFERENCE_PATTERN("")},
    {"iri", URI_PATTERN(WIDE)},
    {"iri-reference", REFERENCE_PATTERN(WIDE)},
    {"uri-template", TEMPLATE_PATTERN},
    {"json-pointer", POINTER_PATTERN},
    {"relative-json-pointer", "(0|[1-9][0-9]{0,9})(#|" POINTER_PATTERN ")"},
    {"regex", REGEX_PATTERN},
    {"ipv4", IPV4_PATTERN},
    {"ipv6", IPV6_PATTERN},
    // As draft 3 has them.
    {"host-name", HOSTNAME_PATTERN},
    {"ip-address", IPV4_PATTERN},
    {"color", COLOR_PATTERN},
}};

/// Formats of all drafts from the third on.
constexpr std::string_view unsupported[] = {"idn-email", "idn-hostname", "style", "phone", "utc-millisec"};

/// The patterns as zod writes them.
constexpr std::pair<std::string_view, std::string_view> spelled_out[] = {
    {"email", R"(^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$)"},
    {"duration", R"(^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$)"},
    {"hostname",
     R"(^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\.?$)"},
};

std::size_t index_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(patterns, name, [](const auto& one) { return one.first; }) -
                                  patterns.begin());
}

}  // namespace

format_kind kind_of_format(std::string_view name) {
  if (index_of(name) < patterns.size()) return format_kind::known;
  const bool has_meaning = std::ranges::find(unsupported, name) != std::end(unsupported);
  return has_meaning ? format_kind::unsupported : format_kind::unheard_of;
}

std::string_view format_pattern(std::string_view name) {
  const std::size_t at = index_of(name);
  return at < patterns.size() ? patterns[at].second : std::string_view{};
}

std::shared_ptr<const regex_dfa> format_texts(std::string_view name) {
  static std::mutex mutex;
  static std::array<std::shared_ptr<const regex_dfa>, patterns.size()> made;
  const std::scoped_lock lock(mutex);
  auto& texts = made.at(index_of(name));
  if (texts) return texts;
  step_count steps(50'000'000);
  auto compiled = regex_dfa::compile(patterns.at(index_of(name)).second, {.is_json = true, .states_max = 4096}, steps);
  REDLINE_ASSERT(compiled.has_value(), "the formats' expressions are good");
  return texts = std::make_shared<const regex_dfa>(std::move(*compiled));
}

bool is_pattern_of_format(std::string_view name, std::string_view pattern) {
  return std::ranges::find(spelled_out, std::pair(name, pattern)) != std::end(spelled_out);
}

}  // namespace redline::grammar
