// Any bytes as a schema, a position in it as received, and text from there: refused, or followed within the tables and
// in few steps; the bytes that must follow are those found by trying every byte.
#include <cstdlib>

#include "runtime/grammar/automata/rules_automaton.hpp"
#include "runtime/grammar/copy_grammar.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "runtime/grammar/tool_grammar.hpp"
#include "runtime/grammar/tool_reader.hpp"
#include "tests/fuzz/driver.hpp"

using namespace redline;

namespace {

// The input: a kind of grammar; except for copies its text and a zero byte; the number of cells, the cells, the text.
constexpr char json = 'j', copies = 'c', gbnf = 'g', calls = 't';

void check(bool good) {
  if (!good) std::abort();
}

void check_run(const grammar::byte_automaton& m, grammar::automaton_state s) {
  if (m.free_text_at(s).table != nullptr || m.is_accepting(s) || m.awaits_span(s)) return;
  for (const char c : m.known_run(s)) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      grammar::automaton_state after = s;
      check(m.advance(after, static_cast<std::uint8_t>(byte)) == (byte == static_cast<std::uint8_t>(c)));
    }
    check(m.advance(s, static_cast<std::uint8_t>(c)));
  }
}

/// is_own: the grammar made the state, so each following state is valid too.
void follow(const grammar::byte_automaton& m, grammar::automaton_state s, std::string_view text, bool is_own) {
  for (const char c : text) {
    check_run(m, s);
    grammar::step_count steps;
    const bool is_possible = m.possible_bytes(s)[static_cast<std::uint8_t>(c)];
    const bool taken = m.advance(s, static_cast<std::uint8_t>(c), steps);
    check(steps.taken() < 50'000);
    check(is_possible || !taken);
    if (!taken || m.is_terminated(s) || m.awaits_span(s)) return;
    check(!is_own || m.is_valid(s));
  }
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  using namespace std::string_literals;
  return {
      "t{\"format\":\"hermes\",\"must_call\":false,\"many\":true,\"tools\":{\"ab\":{\"properties\":{\"a\":{\"type\":\"integer\"}}},\"a\":{}}}\0\0"s +
          "so <tool_call>\n{\"name\": \"ab\", \"arguments\": {\"a\": 1}}\n</tool_call> <",
      "t{\"format\":\"qwen3-coder\",\"must_call\":true,\"many\":false,\"tools\":{\"ab\":{\"properties\":{\"a\":{\"pattern\":\"^x+$\"},\"b\":{},\"c\":{\"type\":\"integer\"}}}}}\0\0"s +
          "<tool_call>\n<function=ab>\n<parameter=a>\nxx\n</parameter>\n<parameter=c>\n1\n</parameter>\n</function>\n</"
          "tool_call>",
      "t{\"format\":\"llama3\",\"must_call\":false,\"many\":true,\"tools\":{\"ab\":{\"type\":\"object\"}}}\0\0{\"name\": \"ab\", \"parameters\": {}}"s,
      "t{\"format\":\"deepseek\",\"must_call\":true,\"many\":true,\"tools\":{\"ab\":{\"maxProperties\":0}}}\0\0"s,
      "j{\"enum\":[\"abc\",\"abd\",17,170]}\0\x05\x40\x09\x02\x01\x02"s + "bd\"",
      "j{\"type\":\"object\",\"properties\":{\"ab\":{\"type\":\"integer\",\"minimum\":3},\"abc\":{\"const\":[1]}},\"required\":[\"ab\"]}\0\0"s +
          "{\"ab\":12,\"abc\":[1]}",
      "j{\"$defs\":{\"a\":{\"anyOf\":[{\"type\":\"null\"},{\"items\":{\"$ref\":\"#/$defs/a\"}}]}},\"$ref\":\"#/$defs/a\"}\0\0[[null],[]]"s,
      "j{\"type\":[\"string\",\"number\"],\"maxLength\":3}\0\0\"a\\u00e9\""s,
      "j{\"properties\":{\"a\":{\"uniqueItems\":true,\"items\":{\"enum\":[1,12]}},\"ab\":{\"items\":{\"type\":"
      "\"array\"},"
      "\"minItems\":18,\"maxItems\":20}},\"required\":[\"ab\"]}\0\0{\"a\":[12,1],\"ab\":[[1],[]"s,
      "j{\"pattern\":\"^a\\\"b[c\\n](de|f){2}$\",\"maxLength\":9}\0\0\"a\\\"b\\ndef\""s,
      "j{\"allOf\":[{\"required\":[\"a\"]},{\"patternProperties\":{\"^a\":{\"not\":{\"const\":\"x\"}}}}],\"minProperties\":1}\0\0{\"a\":\"y\",\"b\":1}"s,
      "j{\"oneOf\":[{\"minimum\":1.5},{\"multipleOf\":2}],\"if\":{\"maximum\":9},\"then\":{\"not\":{\"enum\":[4]}},"
      "\"else\":{\"$ref\":\"#/if\"}}\0\0"
      "8"s,
      "j{\"$id\":\"http://a/b\",\"$defs\":{\"c\":{\"$anchor\":\"d\",\"contains\":{\"type\":\"null\"},\"minContains\":2}},\"anyOf\":[{\"$ref\":\"#d\"},{\"propertyNames\":{\"maxLength\":2},\"dependentRequired\":{\"a\":[\"b\"]}}]}\0\0[1,null,null]"s,
      "j{\"redline:member_order\":\"any\",\"properties\":{\"a\":{\"pattern\":\"(^|b)(cd)*$\",\"minLength\":2,\"maxLength\":7},\"b\":{},\"c\":{}},\"required\":[\"a\"]}\0\0{\"c\":1,\"d\":2,\"a\":\"bcdcd\",\"b\":0}"s,
      "j{\"type\":\"object\",\"propertyNames\":{\"enum\":[\"a\",1]},\"contains\":{\"format\":\"regex\"},\"minItems\":2}\0\0{\"a\":1}"s,
      "j{\"anyOf\":[{\"properties\":{\"a\":{}}},{\"patternProperties\":{\"^b\":{}}}],\"if\":{\"required\":[\"a\"]},\"unevaluatedProperties\":{\"type\":\"null\"}}\0\0{\"a\":1,\"b\":2,\"c\":null}"s,
      "j{\"allOf\":[{\"prefixItems\":[{}]},{\"$dynamicRef\":\"#d\"}],\"unevaluatedItems\":false,\"$defs\":{\"e\":{\"$dynamicAnchor\":\"d\",\"type\":\"array\"}}}\0\0[1]"s,
      "j{\"oneOf\":[{\"additionalProperties\":false,\"properties\":{\"a\":{\"multipleOf\":0.25,\"exclusiveMinimum\":-1.5}}},{\"additionalProperties\":{\"type\":\"null\"},\"properties\":{\"b\":{\"allOf\":[{\"multipleOf\":4},{\"multipleOf\":0.6}]}}}]}\0\0{\"a\":0.75}"s,
      "groot ::= ([a-z]{2,40} \" \" | \"(\" root \")\")*\0\x06\x0c\x01\x01\0\x81\x05\x82\x03(ab cd )"s,
      "j{\"redline:blanks\":0,\"items\":{\"const\":1},\"minItems\":2,\"maxItems\":3}\0\0[1,1]"s,
      "j{\"redline:blanks\":2,\"properties\":{\"a\":{\"format\":\"date\"},\"b\":{\"items\":{\"enum\":[1,12]},\"uniqueItems\":true}},\"required\":[\"a\"]}\0\0{\"a\":\"2026-01-02\",\"b\":[12,1]}"s,
      "groot ::= \"a\" root \"b\" | [^x-z\\u00e9]{2,3} . | (\"c\"+ d)?\nd ::= \"[\" root* \"]\" d | \"\"\0\0aab"s,
      "groot ::= \"\\\"\" ([^\"\\\\\\x7f\\x00-\\x1f] | \"\\\\\" [nt])* \"\\\"\"\0\x03\0\x01\x02\"text"s,
      "gstart: a | start \"+\" a\n?a.2: B~1..2 | \"(\" start \")\" -> g\nB: /[^x\\/]{2,3}/is | \"q\"..\"s\"\n%import common (INT, WS)\n%ignore WS\0\0q + (rs)"s,
      "gstart: [x] start \"i\"i | y // c\nx: y \"b\"?\ny: start \"d\" | x | \"e\"\n\0\0ebd"s,
      "c\0<copy lines=\"3-7\"/>"s,
      "c\x08\x08\x01\x01\0\0\0\0\0pen"s,
  };
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const grammar::copy_grammar programs({.files = {{12, 5}, {3, 0}}, .token_spans = true, .anchors = true});
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const char kind = bytes.front();
  bytes.remove_prefix(1);
  std::shared_ptr<const grammar::byte_automaton> made;
  const grammar::byte_automaton* m = &programs;
  std::shared_ptr<const grammar::tool_automaton> with_calls;
  if (kind == json || kind == gbnf || kind == calls) {
    const auto end = std::min(bytes.find('\0'), bytes.size());
    if (kind == json) {
      grammar::step_count steps(grammar::schema_steps_max);
      const auto compiled = grammar::compile_schema(bytes.substr(0, end), {}, steps);
      check(steps.taken() < 2 * grammar::schema_steps_max);
      if (!compiled) return 0;
      made = *compiled;
    } else if (kind == calls) {
      grammar::step_count steps;
      const auto compiled = grammar::compile_tools(bytes.substr(0, end), steps);
      check(steps.taken() < 4 * grammar::schema_steps_max);
      if (!compiled) return 0;
      made = with_calls = *compiled;
    } else {
      grammar::step_count steps(grammar::rules_automaton::compile_steps_max);
      const auto compiled = grammar::rules_automaton::compile(bytes.substr(0, end), steps);
      check(steps.taken() < 2 * grammar::rules_automaton::compile_steps_max);
      if (!compiled) return 0;
      made = *compiled;
    }
    m = made.get();
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  } else if (kind != copies) {
    return 0;
  }
  if (bytes.empty()) return 0;
  const auto count = std::min<std::size_t>(static_cast<std::uint8_t>(bytes.front()), bytes.size() - 1);
  const auto text = bytes.substr(1 + count);
  follow(*m, m->begin(), text, true);
  if (with_calls) {
    grammar::tool_reader reader(with_calls);
    (void)reader.feed(text);
    (void)reader.finish();
  }
  std::vector<std::uint32_t> cells;
  // The last value stands for everything that is too large. In states of rules the place is above the frame.
  for (const char c : bytes.substr(1, count)) {
    const auto cell = static_cast<std::uint8_t>(c);
    cells.push_back(cell == 0xff ? UINT32_MAX : cell >= 0x80 ? (cell & 0x7fU) << 12 : cell);
  }
  const grammar::automaton_state place(cells);
  if (m->is_valid(place)) follow(*m, place, text, false);
  return 0;
}
