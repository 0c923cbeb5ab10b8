#include "runtime/grammar/syntax/lark_reader.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <random>
#include <set>

#include "runtime/grammar/automata/rules_automaton.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "tests/support/grammar_texts.hpp"

namespace redline::grammar {
namespace {

using ::testing::HasSubstr;

constexpr const char* arithmetic = R"lark(
    // A calculator, with names for its trees.
    ?start: sum
          | NAME "=" sum    -> assign_var
    ?sum: product
        | sum "+" product   -> add
        | sum "-" product   -> sub
    ?product: atom
        | product "*" atom  -> mul
        | product "/" atom  -> div
    ?atom: NUMBER           -> number
         | "-" atom         -> neg
         | NAME             -> var
         | "(" sum ")"
    %import common.CNAME -> NAME
    %import common.NUMBER
    %import common.WS_INLINE
    %ignore WS_INLINE
)lark";

constexpr const char* json_text = R"lark(
?start: value
?value: object | array | string
      | SIGNED_NUMBER      -> number
      | "true"             -> true
      | "false"            -> false
      | "null"             -> null
array  : "[" [value ("," value)*] "]"
object : "{" [pair ("," pair)*] "}"
pair   : string ":" value
string : ESCAPED_STRING
%import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
%ignore WS
)lark";

/// Patches as Codex's patch tool takes them, after its description.
constexpr const char* patches = R"lark(
start: opening change+ closing
opening: "*** Begin Patch" LF
closing: "*** End Patch" LF?
change: added | deleted | updated
added: "*** Add File: " path LF ("+" TAIL LF)+
deleted: "*** Delete File: " path LF
updated: "*** Update File: " path LF moved? hunks?
moved: "*** Move to: " path LF
hunks: (place | line)+ last?
place: ("@@" | "@@ " TAIL) LF
line: ("+" | "-" | " ") TAIL LF
last: "*** End of File" LF
path: /.+/
TAIL: /.*/
%import common.LF
)lark";

constexpr const char* queries = R"lark(
start: "SELECT"i columns "FROM"i NAME filter? order? ";"
columns: STAR | column ("," column)*
column: NAME ["." NAME] ["AS"i NAME]
filter: "WHERE"i condition
condition: condition ("AND"i | "OR"i) condition | NAME COMPARED value | "NOT"i condition | "(" condition ")"
order: "ORDER"i "BY"i NAME ["ASC"i | "DESC"i]
value: SIGNED_INT | /'[^']*'/
STAR.2: "*"
COMPARED: "<" | ">" | "=" | "<=" | ">=" | "<>"
NAME: /[a-z_]\w{0,30}/i
%import common.SIGNED_INT
%import common.WS
%ignore WS
%ignore /--[^\n]*/
)lark";

TEST(lark, reads_grammars_as_people_write_them) {
  for (const char* text : {"1", "x = 1 + 2*3 - (4 / y)", " - ( -2.5e3)", "a", "1+2+3+4+5+6*7*8", "  1 +1 "})
    EXPECT_TRUE(accepts(arithmetic, text)) << text;
  for (const char* text : {"", "1 +", "x = = 1", "(1", "1 2", "x = y = 1", "2.5.1"})
    EXPECT_FALSE(accepts(arithmetic, text)) << text;

  for (const char* text :
       {"{\"a\": [1, -2.5e+3, {\"b\\u00e9\": null}], \"\xc3\xa9\" : \"\"}", "[ ]", " [[[true]]]\n", "0"})
    EXPECT_TRUE(accepts(json_text, text)) << text;
  for (const char* text : {"{\"a\" 1}", "[1,]", "{\"a\": tru}", "\"a", "\"a\n\"", "\"\\\"", "[1}"})
    EXPECT_FALSE(accepts(json_text, text)) << text;

  EXPECT_TRUE(accepts(patches, "*** Begin Patch\n*** Update File: greet.py\n@@ def f():\n-a\n+b\n \n*** End Patch"));
  EXPECT_TRUE(accepts(patches, "*** Begin Patch\n*** Add File: a b.txt\n+\n+x\n*** Delete File: c\n*** End Patch\n"));
  EXPECT_TRUE(
      accepts(patches, "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-a\n*** End of File\n*** End Patch"));
  EXPECT_FALSE(accepts(patches, "*** Begin Patch\n*** End Patch"));
  EXPECT_FALSE(accepts(patches, "*** Begin Patch\n*** Add File: a\nx\n*** End Patch"));
  EXPECT_FALSE(accepts(patches, "*** Begin Patch\n*** Update File: a\n-x\n*** End Patch\nmore"));

  EXPECT_TRUE(accepts(queries, "select a, t.b As c from T where a >= -3 and not (b = 'x' or c<>2) order by a desc ;"));
  EXPECT_TRUE(accepts(queries, "SELECT * -- all\nFROM t;"));
  EXPECT_FALSE(accepts(queries, "SELECT FROM t;"));
  EXPECT_FALSE(accepts(queries, "SELECT a FROM t WHERE a == 1;"));
}

/// Decides without a grammar whether a text is a sum of products of digits.
class sums {
 public:
  static bool hold(const std::string& text) {
    sums s(text);
    return s.sum() && s.at_ == text.size();
  }

 private:
  explicit sums(std::string text) : text_(std::move(text)) {}
  bool take(char c) { return at_ < text_.size() && text_[at_] == c && ++at_ > 0; }
  bool sum() {
    do {
      if (!atom()) return false;
    } while (take('+') || take('*'));
    return true;
  }
  bool atom() { return take('1') || (take('(') && sum() && take(')')); }
  std::string text_;
  std::size_t at_ = 0;
};

TEST(lark, takes_the_texts_of_a_left_recursive_language_and_no_others) {
  const char* grammars[] = {
      "start: s\ns: s \"+\" p | p\np: p \"*\" a | a\na: \"1\" | \"(\" s \")\"",
      // Recursion by way of other rules, and in groups.
      "start: s\ns: (x | p)\nx: s \"+\" p\np: (p \"*\")~0..1 a\na: \"1\" | \"(\" s \")\"",
      "start: a | start \"+\" start | start \"*\" start\na: \"1\" | \"(\" start \")\"",
      // Parts that may be empty come before others.
      "start: s\ns: [s \"+\"] p\np: (p \"*\")? (a | p \"*\" a)\na: \"1\" | \"(\" s \")\"",
  };
  for (const char* grammar : grammars) {
    SCOPED_TRACE(grammar);
    const auto m = make(grammar);
    ASSERT_NE(m, nullptr);
    each_text("1+*()", 6, [&](const std::string& text) { ASSERT_EQ(accepts(*m, text), sums::hold(text)) << text; });
  }
  // A list may have any length, because its recursion is a loop.
  std::string list = "1";
  for (int i = 0; i < 3000; ++i) list += "+1";
  EXPECT_TRUE(accepts(grammars[1], list));
}

/// Rules as lists of alternatives, which are lists of letters (a, b) and rules (numbers). To find what they derive, it
/// goes over all parts of a text until nothing is added.
struct random_grammar {
  std::vector<std::vector<std::vector<int>>> rules;

  [[nodiscard]] std::string text() const {
    std::string out = "start: r0\n";
    for (std::size_t i = 0; i < rules.size(); ++i) {
      out += "r" + std::to_string(i) + ": ";
      for (std::size_t k = 0; k < rules[i].size(); ++k) {
        if (k > 0) out += " | ";
        for (const int symbol : rules[i][k])
          out += symbol < 0 ? (symbol == -1 ? "\"a\" " : "\"b\" ") : "r" + std::to_string(symbol) + " ";
      }
      out += "\n";
    }
    return out;
  }
  [[nodiscard]] bool derives(const std::string& text) const {
    const std::size_t n = text.size();
    std::set<std::tuple<std::size_t, std::size_t, std::size_t>> known;  // rule, from, to
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t r = 0; r < rules.size(); ++r) {
        for (std::size_t from = 0; from <= n; ++from) {
          for (const auto& alternative : rules[r]) {
            std::set<std::size_t> ends{from};
            for (const int symbol : alternative) {
              std::set<std::size_t> next;
              for (const auto end : ends) {
                if (symbol < 0) {
                  if (end < n && text[end] == (symbol == -1 ? 'a' : 'b')) next.insert(end + 1);
                  continue;
                }
                for (std::size_t to = end; to <= n; ++to) {
                  if (known.contains({static_cast<std::size_t>(symbol), end, to})) next.insert(to);
                }
              }
              ends = std::move(next);
            }
            for (const auto end : ends) changed = known.insert({r, from, end}).second || changed;
          }
        }
      }
    }
    return known.contains({0, 0, n});
  }
};

TEST(lark, agrees_with_a_slow_decision_of_grammars_by_chance) {
  std::mt19937 random(11);
  std::size_t recursive = 0;
  for (int run = 0; run < 600; ++run) {
    random_grammar g;
    const auto count = 1 + random() % 3;
    for (std::size_t r = 0; r < count; ++r) {
      auto& rule = g.rules.emplace_back();
      rule.push_back({random() % 2 == 0 ? -1 : -2});
      for (std::size_t k = random() % 3; k > 0; --k) {
        auto& alternative = rule.emplace_back();
        for (std::size_t i = 1 + random() % 3; i > 0; --i)
          alternative.push_back(static_cast<int>(random() % (count + 2)) - 2);
        if (random() % 8 == 0) alternative.clear();
        if (alternative.size() > 1 && alternative.front() >= 0) ++recursive;
      }
    }
    const auto made = rules_automaton::compile(g.text());
    ASSERT_TRUE(made) << g.text();
    each_text("ab", 6, [&](const std::string& text) {
      const auto state = after(**made, text);
      ASSERT_EQ(state && (*made)->is_accepting(*state), g.derives(text)) << g.text() << text;
    });
  }
  EXPECT_GT(recursive, 100U);
}

TEST(lark, reads_texts_expressions_ranges_and_repetitions) {
  const char* grammar = R"lark(
start: "a\x41\u00e9\"\\\n"i | /x\/[^y]+/is | "k".."m" ~ 2..3 | (B "!")~2 | ("p" | [Q])+ "." | R
B: "b"
Q.-3: "q" | B B
R: "<" /[a-z]*/ ">"
)lark";
  const auto m = make(grammar);
  ASSERT_NE(m, nullptr);
  for (const char* text : {"aA\xc3\xa9\"\\\n", "Aa\xc3\xa9\"\\\n", "X/Z\n", "kl", "mmm", "b!b!", "pqbbp.", ".", "<ab>"})
    EXPECT_TRUE(accepts(*m, text)) << text;
  for (const char* text : {"aA\xc3\x89\"\\\n", "x/Y", "k", "kkkk", "n", "b!", "b!b!b!", "pb.", "<aB>", "B!B!"})
    EXPECT_FALSE(accepts(*m, text)) << text;
}

TEST(lark, takes_names_with_hyphens) {
  const auto good = make("start: two-words | A-B->alias | \"-\"\ntwo-words: \"a\" -> its-name\nA-B: \"b\"\n");
  ASSERT_NE(good, nullptr);
  for (const char* text : {"a", "b", "-"}) EXPECT_TRUE(accepts(*good, text)) << text;
  EXPECT_FALSE(accepts(*good, "a-"));
}

TEST(lark, ignores_between_terminals_and_not_inside_of_them) {
  const char* grammar = "start: \"a\" B r\nr: /c/ | \"(\" r \")\"\nB: \"b\" \"b\"\n%ignore \" \"\n%ignore /#[^#]*#/";
  const auto m = make(grammar);
  ASSERT_NE(m, nullptr);
  for (const char* text : {"abbc", " a #x# bb( c )  ", "#..##  #abbc", "a bb((c))#"}) {
    EXPECT_EQ(accepts(*m, text), std::string_view(text).back() != '#') << text;
  }
  EXPECT_FALSE(accepts(*m, "ab bc"));
  EXPECT_FALSE(accepts(*m, "abb(c"));
  EXPECT_FALSE(accepts("start: \"a\" \"b\"", "a b"));
}

TEST(lark, knows_the_common_terminals) {
  const auto takes = [](const std::string& name, const std::string& text) {
    return accepts("start: X\n%import common." + name + " -> X", text);
  };
  for (const auto& [name, text] :
       std::initializer_list<std::pair<const char*, const char*>>{{"INT", "007"},
                                                                  {"SIGNED_INT", "-7"},
                                                                  {"DECIMAL", "1."},
                                                                  {"DECIMAL", ".5"},
                                                                  {"FLOAT", "1e9"},
                                                                  {"FLOAT", "2.5E-3"},
                                                                  {"SIGNED_FLOAT", "+.5"},
                                                                  {"NUMBER", "12"},
                                                                  {"NUMBER", "1.5"},
                                                                  {"SIGNED_NUMBER", "-1e2"},
                                                                  {"WORD", "abC"},
                                                                  {"CNAME", "_a1"},
                                                                  {"WS", " \t\f\r\n"},
                                                                  {"WS_INLINE", " \t"},
                                                                  {"NEWLINE", "\r\n\n"},
                                                                  {"LETTER", "z"},
                                                                  {"DIGIT", "0"},
                                                                  {"HEXDIGIT", "F"},
                                                                  {"ESCAPED_STRING", "\"a\\\"b\\\\\""},
                                                                  {"LCASE_LETTER", "a"},
                                                                  {"UCASE_LETTER", "A"},
                                                                  {"CR", "\r"},
                                                                  {"LF", "\n"},
                                                                  {"SH_COMMENT", "# a"},
                                                                  {"CPP_COMMENT", "// a"},
                                                                  {"SQL_COMMENT", "-- a"},
                                                                  {"C_COMMENT", "/* * / ***/"}})
    EXPECT_TRUE(takes(name, text)) << name << " " << text;
  for (const auto& [name, text] :
       std::initializer_list<std::pair<const char*, const char*>>{{"INT", "-7"},
                                                                  {"INT", ""},
                                                                  {"FLOAT", "1"},
                                                                  {"DECIMAL", "."},
                                                                  {"CNAME", "1a"},
                                                                  {"WORD", "a1"},
                                                                  {"WS_INLINE", "\n"},
                                                                  {"HEXDIGIT", "g"},
                                                                  {"NEWLINE", "\r"},
                                                                  {"NUMBER", "1e"},
                                                                  {"WS", ""},
                                                                  {"SH_COMMENT", "#\n"},
                                                                  {"C_COMMENT", "/* */ */"},
                                                                  {"ESCAPED_STRING", "\"a\\\""},
                                                                  {"ESCAPED_STRING", "\"a\nb\""}})
    EXPECT_FALSE(takes(name, text)) << name << " " << text;
}

TEST(lark, says_what_is_wrong_with_a_grammar_and_where) {
  EXPECT_THAT(why_not("begin: \"a\""), HasSubstr("a rule named 'start'"));
  EXPECT_THAT(why_not("start: a\na: b\n"), HasSubstr("line 2: there is no rule 'b'"));
  EXPECT_THAT(why_not("start: \"a\"\nstart: \"b\""), HasSubstr("line 2: the rule 'start' is written twice"));
  EXPECT_THAT(why_not("start: \"a\"\n%declare A"), HasSubstr("line 2: '%declare' is not supported"));
  EXPECT_THAT(why_not("start: \"a\"\n%override start: \"b\""), HasSubstr("line 2: '%override' is not supported"));
  EXPECT_THAT(why_not("%extend start: \"b\""), HasSubstr("line 1: '%extend' is not supported"));
  EXPECT_THAT(why_not("start: two{A}\ntwo{x}: x x"), HasSubstr("line 1: templates ('two{...}')"));
  EXPECT_THAT(why_not("start: A\ntwo{x}: x x"), HasSubstr("line 2: templates ('two{...}')"));
  EXPECT_THAT(why_not("start: %json {}"), HasSubstr("'%json {}' is not supported"));
  EXPECT_THAT(why_not("start: <|im_end|>"), HasSubstr("tokens"));
  EXPECT_THAT(why_not("start[stop=\"\"]: A"), HasSubstr("line 1: attributes ('start[...]')"));
  EXPECT_THAT(why_not("%import python.NAME\nstart: NAME"), HasSubstr("line 1: only terminals of the library 'common'"));
  EXPECT_THAT(why_not("start: A\n%import common.NAME"),
              HasSubstr("line 2: the library 'common' has no terminal 'NAME'"));
  EXPECT_THAT(why_not("start: A\nA: \"x\" b\nb: \"y\""), HasSubstr("line 2: a terminal is made of terminals, and 'b'"));
  EXPECT_THAT(why_not("start: A\nA: \"x\" B?\nB: A"), HasSubstr("is made of itself"));
  EXPECT_THAT(why_not("start: /a(?=b)/"), HasSubstr("line 1: the expression /a(?=b)/: look-around"));
  EXPECT_THAT(why_not("start: /^a$/"), HasSubstr("'^' is not supported here"));
  EXPECT_THAT(why_not("start: /a$/m"), HasSubstr("'$' is not supported here"));
  EXPECT_THAT(why_not("start: /a/x"), HasSubstr("the flag 'x'"));
  EXPECT_THAT(why_not("start: /a"), HasSubstr("an expression does not end"));
  EXPECT_THAT(why_not("start: \"a"), HasSubstr("a text does not end"));
  EXPECT_THAT(why_not("start: \"\\d\""), HasSubstr("unknown escape"));
  EXPECT_THAT(why_not("start: \"ab\"..\"c\""), HasSubstr("single characters"));
  EXPECT_THAT(why_not("start: \"c\"..\"a\""), HasSubstr("ends before it begins"));
  EXPECT_THAT(why_not("start: \"a\"~3..2"), HasSubstr("n up to m"));
  EXPECT_THAT(why_not("start: \"a\"~5000"), HasSubstr("up to 1024"));
  EXPECT_THAT(why_not("start: (\"a\""), HasSubstr("expected ')'"));
  EXPECT_THAT(why_not("start: \"a\" -> a b"), HasSubstr("the end of the alternative"));
  EXPECT_THAT(why_not("start: \"a\"\nb ::= \"c\""), HasSubstr("line 2: expected a rule: NAME: ..., found one in GBNF"));
  EXPECT_THAT(why_not("start: start \"a\""), HasSubstr("has no text"));
}

TEST(lark, refuses_in_few_steps_what_would_take_too_many) {
  std::string rules = "start: r0\n", expressions = "start: A0\n", recursion = "start: r0\n",
              wide = "start: r\nr: \"a\"";
  for (int i = 0; i < 1500; ++i) rules += "r" + std::to_string(i) + ": r" + std::to_string(i + 1) + " \"a\"\n";
  rules += "r1500: \"b\"";
  for (int i = 0; i < 1000; ++i)
    expressions += "A" + std::to_string(i) + ": /((a|b)*a(a|b){9}|c{" + std::to_string(i) + "})/\n";
  for (int i = 0; i < 200; ++i) {
    recursion += "r" + std::to_string(i) + ": \"x\"";
    for (int k = 0; k < 10; ++k)
      recursion += "|r" + std::to_string((i * 7 + k * 13 + 1) % 200) + "\"" + std::to_string(k) + "\"";
    recursion += "\n";
  }
  for (int i = 0; i < 2000; ++i) wide += "|r \"" + std::to_string(i) + "\"";
  std::string deep = "start: ";
  for (int i = 0; i < 60; ++i) deep += "(start|";
  deep += "\"a\"";
  for (int i = 0; i < 60; ++i) deep += ")\"b\"";
  for (const auto& text : {rules, expressions, recursion, wide, deep, "start: " + std::string(30'000, '('),
                           "start: /" + std::string(30'000, '['), "start: \"" + std::string(30'000, 'a') + "\"i",
                           "start: " + std::string(30'000, '?'), "start: a\n" + std::string(30'000, '%')}) {
    step_count steps(rules_automaton::compile_steps_max);
    const auto made = rules_automaton::compile(text, steps);
    EXPECT_LT(steps.taken(), rules_automaton::compile_steps_max + 200'000) << text.substr(0, 60);
    EXPECT_TRUE(!made || (*made)->is_valid((*made)->begin()));
  }
}

}  // namespace
}  // namespace redline::grammar
