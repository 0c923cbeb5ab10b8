#include "runtime/grammar/automata/rules_automaton.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <random>

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "tests/runtime/grammar/grammar_fixture.hpp"
#include "tests/support/grammar_texts.hpp"

namespace redline::grammar {
namespace {

using ::testing::HasSubstr;

struct language {
  const char* grammar;
  std::function<bool(const std::string&)> holds;
};

bool is_balanced(const std::string& text) {
  int open = 0;
  for (const char c : text) {
    if (c == 'a') ++open;
    if (c == 'b' && --open < 0) return false;
    if (c == 'c') return false;
  }
  return open == 0;
}
std::size_t leading(const std::string& text, char c) {
  const auto at = text.find_first_not_of(c);
  return at == std::string::npos ? text.size() : at;
}

TEST(gbnf, takes_the_texts_of_a_language_and_no_others) {
  const language all[] = {
      {"root ::= \"a\" root \"b\" | \"\"",
       [](const std::string& t) {
         const auto n = leading(t, 'a');
         return t == std::string(n, 'a') + std::string(n, 'b');
       }},
      {"root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"c\" root \"c\" | [abc] | \"\"",
       [](const std::string& t) { return std::equal(t.begin(), t.end(), t.rbegin()); }},
      {"root ::= (\"a\" root \"b\")*", is_balanced},
      {"root ::= item root | \"\"\nitem ::= \"a\" root \"b\"", is_balanced},
      // Each letter doubles the number of ways.
      {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root | \"\"",
       [](const std::string& t) {
         const auto n = leading(t, 'a');
         return t.find('a', n) == std::string::npos && t.size() <= 2 * n;
       }},
      {"root ::= x x x\nx ::= \"a\"? \"b\"? | \"ab\" \"c\"*",
       [](const std::string& t) {
         std::size_t at = 0;
         // Each part takes as much as it can, which leaves the least to the others.
         for (int i = 0; i < 3; ++i) {
           const bool a = t[at] == 'a';
           at += a ? 1 : 0;
           const bool b = t[at] == 'b';
           at += b ? 1 : 0;
           while (a && b && t[at] == 'c') ++at;
         }
         return at == t.size();
       }},
      {"root ::= [^b]{2,3} | \"b\"{3,}",
       [](const std::string& t) {
         const bool has_b = t.find('b') != std::string::npos;
         return has_b ? t.size() >= 3 && leading(t, 'b') == t.size() : t.size() == 2 || t.size() == 3;
       }},
      {"root ::= root \"a\" | b\nb ::= root \"b\" | \"c\"",
       [](const std::string& t) { return !t.empty() && t.find_last_of('c') == 0; }},
      // Left recursion behind what may be empty, and endlessly many readings of a text.
      {"root ::= a root \"a\" | \"b\"\na ::= \"c\"?",
       [](const std::string& t) {
         const auto n = leading(t, 'c');
         return n < t.size() && t == std::string(n, 'c') + "b" + std::string(t.size() - n - 1, 'a') &&
                t.size() - n - 1 >= n;
       }},
      {"root ::= root root | \"\" | \"ab\"",
       [](const std::string& t) {
         std::size_t at = 0;
         while (t.compare(at, 2, "ab") == 0) at += 2;
         return at == t.size();
       }},
      {"root ::= root | x root | \"b\"\nx ::= root x | \"\" | \"a\"",
       [](const std::string& t) { return !t.empty() && t.back() == 'b' && t.find('c') == std::string::npos; }},
      {"root ::= ((\"a\"?)* \"b\")* | \"c\"",
       [](const std::string& t) {
         return t == "c" || (t.find('c') == std::string::npos && (t.empty() || t.back() == 'b'));
       }},
  };
  for (const auto& one : all) {
    SCOPED_TRACE(one.grammar);
    const auto m = make(one.grammar);
    each_text("abc", 7, [&](const std::string& text) { ASSERT_EQ(accepts(*m, text), one.holds(text)) << text; });
  }
}

constexpr const char* arithmetic = R"gbnf(
# sums of products
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t]*
)gbnf";
constexpr const char* json_text = R"gbnf(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf";
constexpr const char* chess = R"gbnf(root ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
)gbnf";
constexpr const char* c_like = R"gbnf(root ::= (declaration)*
declaration ::= type identifier "(" parameter? ")" "{" statement* "}"
type ::= "int" ws | "float" ws | "char" ws
identifier ::= [a-zA-Z_] [a-zA-Z_0-9]*
parameter ::= type identifier
statement ::= type identifier ws? "=" ws? expression ";"
            | identifier ws? "=" ws? expression ";"
            | "return" ws expression ";"
            | "while" "(" condition ")" "{" statement* "}"
            | "if" "(" condition ")" "{" statement* "}" ("else" "{" statement* "}")?
condition ::= expression ("<" | "<=" | "==") expression
expression ::= term (("+" | "-") term)*
term ::= factor (("*" | "/") factor)*
factor ::= identifier | [0-9]+ | "-" factor | "(" expression ")"
ws ::= [ \t\n]+
)gbnf";

TEST(gbnf, reads_grammars_as_people_write_them) {
  EXPECT_TRUE(accepts(arithmetic, "(a +2) *b3 = 7\nx=1\n"));
  EXPECT_FALSE(accepts(arithmetic, "(a +2 *b3 = 7\n"));
  EXPECT_TRUE(accepts(json_text, "{\"a\": [1, -2.5e+3, {\"b\\u00e9\": null}], \"\xc3\xa9\xf0\x9f\x99\x82\": \"\"}"));
  EXPECT_FALSE(accepts(json_text, "{\"a\": 01}"));
  EXPECT_FALSE(accepts(json_text, "{\"a\": \"\x80\"}"));
  EXPECT_FALSE(accepts(json_text, "[1]"));
  EXPECT_TRUE(accepts(chess, "1. e4 e5\n2. Nf3 Nc6\n3. O-O exd5\n"));
  EXPECT_FALSE(accepts(chess, "1. e9 e5\n2. Nf3 Nc6\n"));
  EXPECT_TRUE(accepts(c_like, "int main(int a){while(a<10){a = a+1;}return (a)*-2;}"));
  EXPECT_FALSE(accepts(c_like, "int main(int a){return a}"));
}

TEST(gbnf, reads_escapes_ranges_and_characters_beyond_ascii) {
  EXPECT_TRUE(accepts("root ::= \"\\x41\\u00e9\\U0001F642\\\"\\\\\\n\"", "A\xc3\xa9\xf0\x9f\x99\x82\"\\\n"));
  const auto m = make("root ::= [\xc3\xa0-\xc3\xbc\xe4\xb8\x80-\xe9\xbf\xbf\\U0001F600-\\U0001F64F]");
  EXPECT_TRUE(accepts(*m, "\xc3\xa9"));
  EXPECT_FALSE(accepts(*m, "\xc3\xbd"));
  EXPECT_TRUE(accepts(*m, "\xe5\x8f\xa3"));
  EXPECT_TRUE(accepts(*m, "\xf0\x9f\x99\x82"));
  EXPECT_FALSE(accepts(*m, "\xf0\x9f\x9a\x80"));
  // Tries each character alone: a class accepts what it says.
  for (const char* text : {"[^a\\u07ff-\\ud7ff\\U00010000-\\U0001ffff]", "[\\u0400-\\U00011111]", "."}) {
    const auto one = make("root ::= " + std::string(text));
    for (char32_t code = 1; code <= 0x10ffff; code += code < 0x3000 ? 1 : 257) {
      if (code >= 0xd800 && code <= 0xdfff) continue;
      const bool wanted = text[0] == '.' ? true
                          : text[1] == '^'
                              ? code != 'a' && (code < 0x7ff || code > 0xd7ff) && (code < 0x10000 || code > 0x1ffff)
                              : code >= 0x400 && code <= 0x11111;
      std::string bytes;
      utf8::append(bytes, code);
      ASSERT_EQ(accepts(*one, bytes), wanted) << text << " " << static_cast<std::uint32_t>(code);
    }
    EXPECT_FALSE(accepts(*one, "\xed\xa0\x80")) << "a surrogate";
    EXPECT_FALSE(accepts(*one, "\xc0\x80"));
  }
}

TEST(gbnf, says_what_is_wrong_with_a_grammar_and_where) {
  EXPECT_THAT(why_not(""), HasSubstr("a rule named 'root'"));
  EXPECT_THAT(why_not("root ::= a\na ::= b\n"), HasSubstr("line 2: there is no rule 'b'"));
  EXPECT_THAT(why_not("root ::= \"a\"\nroot ::= \"b\""), HasSubstr("line 2: the rule 'root' is written twice"));
  EXPECT_THAT(why_not("root ::= root \"a\""), HasSubstr("'root' has no text"));
  EXPECT_THAT(why_not("root ::= \"a\" root"), HasSubstr("'root' has no text"));
  EXPECT_THAT(why_not("root ::= \"a\" b\nb ::= \"(\" b \")\""), HasSubstr("'b' has no text"));
  EXPECT_THAT(why_not("root ::= []"), HasSubstr("has no text"));
  EXPECT_THAT(why_not("root ::= \"a"), HasSubstr("line 1: a text does not end"));
  EXPECT_THAT(why_not("root ::= [a"), HasSubstr("a class does not end"));
  EXPECT_THAT(why_not("root ::= [b-a]"), HasSubstr("ends before it begins"));
  EXPECT_THAT(why_not("root ::= (\"a\""), HasSubstr("expected ')'"));
  EXPECT_THAT(why_not("root ::= \"a\")"), HasSubstr("expected the end of the rule 'root'"));
  EXPECT_THAT(why_not("root ::= \"a\"{3,2}"), HasSubstr("m up to n"));
  EXPECT_THAT(why_not("root ::= \"a\"{5000}"), HasSubstr("up to 1024"));
  EXPECT_THAT(why_not("root ::= \"\\q\""), HasSubstr("unknown escape"));
  EXPECT_THAT(why_not("root ::= \"\\ud800\""), HasSubstr("character of Unicode"));
  EXPECT_THAT(why_not("root ::= <think>"), HasSubstr("tokens"));
  EXPECT_THAT(why_not("root ::= \"a\"\nB: \"b\""),
              HasSubstr("line 2: expected a rule: NAME ::= ..., found one in Lark"));
  EXPECT_THAT(why_not("root ::= \"a\" = \"b\""), HasSubstr("expected a text, a class"));
}

TEST(gbnf, no_state_is_a_dead_end_however_deep_or_ambiguous) {
  std::mt19937 random(5);
  const char* grammars[] = {arithmetic,
                            json_text,
                            chess,
                            c_like,
                            "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root | \"\"",
                            "root ::= \"(\" root \")\" | \"[\" root \"]\" root | \"x\"",
                            "root ::= a a a a a a a a\na ::= \"x\" | \"x\" a \"y\" | \"x\" a a"};
  for (const char* grammar : grammars) {
    SCOPED_TRACE(grammar);
    const auto m = make(grammar);
    for (int run = 0; run < 30; ++run) {
      automaton_state s = m->begin();
      for (int i = 0; i < 400 && !m->is_terminated(s); ++i) {
        ASSERT_TRUE(m->is_valid(s));
        std::vector<std::uint8_t> allowed;
        for (unsigned b = 0; b < 256; ++b) {
          automaton_state next = s;
          step_count steps;
          if (m->advance(next, static_cast<std::uint8_t>(b), steps)) allowed.push_back(static_cast<std::uint8_t>(b));
          ASSERT_LT(steps.taken(), 2 * rules_automaton::work_max);
        }
        ASSERT_TRUE(!allowed.empty() || m->is_accepting(s));
        if (allowed.empty()) break;
        // Opening characters come more often, so that stacks grow.
        auto byte = allowed[random() % allowed.size()];
        for (const char opening : {'(', '[', '{', 'a', 'x'}) {
          if (random() % 3 == 0 && std::find(allowed.begin(), allowed.end(), opening) != allowed.end())
            byte = static_cast<std::uint8_t>(opening);
        }
        ASSERT_TRUE(m->advance(s, byte));
      }
    }
  }
}

// Unambiguous expressions as in textbooks: the operand before an operator begins several alternatives.
TEST(gbnf, takes_expressions_in_parentheses_however_their_rules_begin_alike) {
  const std::string gbnf =
      "root ::= e\ne ::= t \"+\" e | t \"-\" e | t\nt ::= f \"*\" t | f \"/\" t | f\n"
      "f ::= [0-9]+ | \"(\" e \")\"";
  const std::string lark =
      "start: e\ne: t \"+\" e | t \"-\" e | t\nt: f \"*\" t | f \"/\" t | f\n"
      "f: /[0-9]+/ | \"(\" e \")\"";
  for (const auto& grammar : {gbnf, lark}) {
    for (std::size_t depth = 0; depth <= 12; ++depth) {
      const std::string open(depth, '('), close(depth, ')');
      for (const std::string inside : {"1", "1+2", "3*4-5", "(6)/7"}) {
        EXPECT_TRUE(accepts(grammar, open + inside + close)) << open << inside;
        EXPECT_FALSE(accepts(grammar, open + inside + close + ")")) << open << inside;
      }
    }
  }
}

// If a text has more readings than a state has space for, nothing is forbidden silently.
TEST(gbnf, says_that_a_text_can_be_read_in_too_many_ways) {
  const auto m = make("root ::= root root | \"x\"");
  automaton_state s = m->begin();
  std::size_t count = 0;
  for (; !m->is_lost(s) && count < 1000; ++count) ASSERT_TRUE(m->advance(s, 'x'));
  ASSERT_LT(count, 1000u);
  EXPECT_GT(count, 40u);
  EXPECT_TRUE(m->is_valid(s));
  EXPECT_FALSE(m->is_accepting(s));
  EXPECT_FALSE(m->is_terminated(s));
  for (unsigned byte = 0; byte < 256; ++byte) {
    EXPECT_TRUE(m->advance(s, static_cast<std::uint8_t>(byte)));
    EXPECT_TRUE(m->is_lost(s));
  }
  EXPECT_TRUE(m->known_run(s).empty());
  EXPECT_EQ(m->free_text_at(s).table, nullptr);
  EXPECT_FALSE(m->is_valid(automaton_state(std::vector<std::uint32_t>{2, 0})));
}

TEST(gbnf, takes_many_rules_that_begin_alike) {
  std::string wide = "root ::= ";
  for (int i = 0; i < 150; ++i) wide += (i > 0 ? " | r" : "r") + std::to_string(i);
  for (int i = 0; i < 150; ++i) wide += "\nr" + std::to_string(i) + " ::= [a] root [b] | \"" + std::to_string(i) + "\"";
  EXPECT_TRUE(accepts(wide, "aaa149bbb"));
  EXPECT_FALSE(accepts(wide, "aaa150bbb"));
  // Rules that begin with each other in a ring.
  std::string ring;
  for (int i = 0; i < 300; ++i)
    ring += (i == 0 ? "root" : "r" + std::to_string(i)) + " ::= " + (i == 299 ? "root" : "r" + std::to_string(i + 1)) +
            " \"b\" | \"c\"\n";
  const auto m = make(ring);
  for (const std::size_t count : {0, 1, 299, 300, 301, 2000})
    EXPECT_TRUE(accepts(*m, "c" + std::string(count, 'b'))) << count;
  EXPECT_FALSE(after(*m, "cc"));
}

// Repetitions that are too long for places of their own are counted beside one.
TEST(gbnf, counts_long_repetitions_as_it_would_write_them_out) {
  const auto words = [](const std::string& text) {  // as "a" or "ab"
    return std::count(text.begin(), text.end(), 'a');
  };
  const auto is_words = [](const std::string& text) {
    return text.empty() || (text.front() == 'a' && text.find("bb") == std::string::npos);
  };
  const auto few = make("root ::= (\"a\" | \"ab\"){3,20} \"b\"?");
  const auto empty = make("root ::= (\"a\"? \"b\"?){5,20} \"c\"");
  each_text("ab", 9, [&](const std::string& text) {
    const bool ends_in_b = text.size() > 1 && text.back() == 'b';
    const bool good = (is_words(text) && words(text) >= 3) ||
                      (ends_in_b && is_words(text.substr(0, text.size() - 1)) && words(text) >= 3);
    EXPECT_EQ(accepts(*few, text), good) << text;
    EXPECT_TRUE(accepts(*empty, text + "c")) << "a text that may be empty may also be missing: " << text;
  });
  const auto m = make("root ::= \"<\" [a-z\\u00e9]{2,300} \">\" | \"<\" [a-z]{1,17} [0-9]");
  for (const std::size_t count : {1, 2, 17, 18, 300, 301}) {
    const std::string letters(count, 'x');
    EXPECT_EQ(accepts(*m, "<" + letters + ">"), count >= 2 && count <= 300) << count;
    EXPECT_EQ(accepts(*m, "<" + letters + "7"), count <= 17) << count;
  }
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += "\xc3\xa9";
  EXPECT_TRUE(accepts(*m, "<" + wide + ">"));
  EXPECT_FALSE(after(*m, "<" + wide + "\xc3"));
  EXPECT_LE(after(*m, "<" + wide)->size(), 8u);
  const auto text = make("root ::= \"\\\"\" [^\"\\\\\\x00-\\x1f\\x7f]{3,200} \"\\\"\"");
  EXPECT_EQ(text->free_text_at(*after(*text, "\"ab")).characters_max, 198u);
  EXPECT_NE(text->free_text_at(*after(*text, "\"abcd")).table, nullptr);
}

// A state is as large as what is open, not as the text: lists stay small, however their recursion is written.
TEST(gbnf, forgets_what_is_closed) {
  for (const char* grammar : {"root ::= (x \",\")*\nx ::= [a-z]+ | \"(\" root \")\"",
                              "root ::= root x \",\" | \"\"\nx ::= [a-z]+ | \"(\" root \")\"",
                              "root ::= x \",\" root | \"\"\nx ::= [a-z]+ | \"(\" root \")\""}) {
    const auto m = make(grammar);
    std::string text = "ab,(cd,(e,),),";
    for (int i = 0; i < 50; ++i) text += "ab,(cd,(e,),),";
    EXPECT_EQ(*after(*m, text + "ab,(cd,("), *after(*m, "ab,(cd,(")) << grammar;
    EXPECT_LE(after(*m, text + "ab,(cd,(")->size(), 20u) << grammar;
  }
}

TEST(gbnf, takes_lists_of_many_texts_as_one) {
  std::string list = "root ::= ", nested = "\nx ::= ";
  for (int i = 0; i < 1500; ++i) list += (i > 0 ? " | " : "") + std::string("\"item ") + std::to_string(i) + "\" x";
  for (int i = 0; i < 100; ++i)
    nested += (i > 0 ? " | \"" : "\"") + std::string(static_cast<std::size_t>(i), 'a') + "\"";
  const auto m = make(list + nested);
  ASSERT_NE(m, nullptr);
  for (const char* text : {"item 0", "item 1499", "item 149aaa", "item 7a"}) EXPECT_TRUE(accepts(*m, text)) << text;
  EXPECT_TRUE(accepts(*m, "item 7" + std::string(99, 'a')));
  EXPECT_FALSE(accepts(*m, "item 7" + std::string(100, 'a')));
  EXPECT_FALSE(accepts(*m, "item 1500"));
  EXPECT_FALSE(accepts(*m, "item "));
  EXPECT_TRUE(accepts("root ::= \"\" | \"a\" | \"ab\" | \"a\" [c] | \"ab\" root", "abab"));
}

TEST(gbnf, bounds_what_is_open_at_the_same_time_but_not_what_follows) {
  const auto m = make("root ::= \"(\" root \")\" | \"x\"");
  EXPECT_TRUE(accepts(*m, std::string(1000, '(') + "x" + std::string(1000, ')')));
  EXPECT_FALSE(accepts(*m, std::string(1000, '(') + "x" + std::string(999, ')')));
  EXPECT_FALSE(after(*m, std::string(1000, '(') + "x" + std::string(1001, ')')));
  EXPECT_TRUE(m->is_lost(*after(*m, std::string(2000, '('))));
  // Recursion at a rule's end is a loop.
  EXPECT_TRUE(accepts("root ::= \"a\" root | \"b\"", std::string(10'000, 'a') + "b"));
  EXPECT_TRUE(accepts("root ::= (\"a\" | b)*\nb ::= \"b\" b | \"c\"", std::string(5000, 'b') + "ca"));
}

TEST(gbnf, refuses_in_few_steps_what_would_take_too_many) {
  std::string deep = "root ::= ";
  for (int i = 0; i < 6; ++i) deep += "(";
  deep += "\"a\"";
  for (int i = 0; i < 6; ++i) deep += "){1000}";
  std::string wide = "root ::= \"a\"";
  for (int i = 0; i < 5000; ++i) wide += "|[" + std::string(1, "bc"[i % 2]) + "]\"" + std::to_string(i) + "\"";
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 1500; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " [ab]\n";
  chain += "r1500 ::= \"a\"";
  std::string many = "root ::= a*\na ::= ";
  for (int i = 0; i < 100; ++i) many += (i > 0 ? " " : "") + std::string("(\"x\" | a2)?");
  many += "\na2 ::= [abc]* [abd]* [abe]* [abf]* [abg]*";
  for (const auto& text : {deep, wide, chain, many, std::string(30'000, '('), "root ::= " + std::string(30'000, '"'),
                           "root ::= [" + std::string(30'000, 'a'), std::string(32'000, 'a') + " ::= \"x\""}) {
    step_count steps(rules_automaton::compile_steps_max);
    const auto made = rules_automaton::compile(text, steps);
    EXPECT_LT(steps.taken(), rules_automaton::compile_steps_max + 50'000) << text.substr(0, 60);
    EXPECT_TRUE(!made || (*made)->is_valid((*made)->begin()));
  }
  EXPECT_THAT(why_not(deep), HasSubstr("repeat less"));
  EXPECT_THAT(why_not(wide), HasSubstr("alternatives may follow at one place"));
}

TEST(gbnf, believes_no_state_that_is_not_one) {
  const auto m = make(json_text);
  std::mt19937 random(9);
  const auto good = *after(*m, "{\"a\": [1, {\"b\": \"x");
  std::size_t valid = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint32_t> cells(good.cells().begin(), good.cells().end());
    cells[random() % cells.size()] = i % 2 == 0 ? random() : good[random() % good.size()];
    if (i % 5 == 0) cells.resize(random() % automaton_state::cells_max);
    automaton_state s(cells);
    if (!m->is_valid(s)) continue;
    ++valid;
    for (int k = 0; k < 20 && m->advance(s, "\"]},x1 "[random() % 7]); ++k) {
    }
  }
  EXPECT_GT(valid, 0u);
  EXPECT_FALSE(m->is_valid(automaton_state{}));
  // Frames that lead to themselves or to later ones, and too many of them.
  for (const std::vector<std::uint32_t>& cells : {std::vector<std::uint32_t>{4 | 1 << 3, 1, 1, 0, 1},
                                                  {4 | 2 << 3, 1, 1, 0, 0},
                                                  {0, 0},
                                                  {4 | 1 << 3, 0},
                                                  {1, 4095},
                                                  {1, UINT32_MAX},
                                                  {4, 1, 0},
                                                  {4, 1, UINT32_MAX},
                                                  {3},
                                                  {1},
                                                  {}})
    EXPECT_FALSE(m->is_valid(automaton_state(cells)));
}

TEST(gbnf, treats_bytes_of_one_kind_alike) {
  const auto m = make(json_text);
  automaton_state s = m->begin();
  for (const char c : std::string("{\"k\\u00e9 \xc3\xa9\": [12, {\"a\": -1.5e3}]}")) {
    const auto kinds = m->kinds_of_bytes(s);
    std::vector<std::optional<automaton_state>> after(kinds.count);
    std::vector<bool> is_known(kinds.count);
    for (unsigned byte = 0; byte < 256; ++byte) {
      automaton_state next = s;
      const bool taken = m->advance(next, static_cast<std::uint8_t>(byte));
      const auto one = taken ? std::optional(next) : std::nullopt;
      const auto kind = kinds.of[byte];
      if (is_known[kind]) {
        EXPECT_EQ(after[kind], one) << byte;
      }
      is_known[kind] = true;
      after[kind] = one;
    }
    EXPECT_LT(kinds.count, 40U);
    ASSERT_TRUE(m->advance(s, static_cast<std::uint8_t>(c)));
  }
}

TEST(gbnf, gives_the_masks_that_trying_every_token_gives) {
  std::vector<std::pair<std::string, std::shared_ptr<const text::tokenizer>>> all = test::real_tokenizers();
  all.emplace_back("tiny", test::tiny_tokenizer());
  const std::pair<const char*, std::string> texts[] = {
      {json_text, "{\"key\\u00e9 \xc3\xa9\": [12, \"text of \xe5\x8f\xa3 words\"]}"},
      {arithmetic, "(ab +12) *c = 7\n"},
      {"root ::= (field \",\")+\nfield ::= [^\\\",\\n\\u2028\\u00e9]* | \"\\\"\" [^\\\"]{0,9} \"\\\"\"",
       "a \xe5\x8f\xa3 word,\"in \xc3\xa9 q\","},
      {"root ::= (\"\\\"\" ([^\\\"\\\\] | \"\\\\\" [nt]){3,20} \"\\\"\")+", "\"abc \xc3\xa9 de\\n\"\"fgh\""},
      // Some texts mean something else than all others, and are followed by something else.
      {"root ::= (\"'\" (\"ab\" [^\\x00-\\x1f'\\\\] plain | \"abc\" | \"k\\u00e9\" | [^\\x00-\\x1f'\\\\ak] plain) "
       "\"'\" )+ "
       "\"'ab'!\"\nplain ::= [^\\x00-\\x1f'\\\\]*",
       "'zw''abcd''k\xc3\xa9''abc'"},
      {"root ::= ([0-9A-Za-z]{6} | [0-9a-z]{9} | [^a]{30,40}) \"-\" .{2,}", "abcdef-xyz"},
      // Each letter leads to another state, and there are more of them than a mask remembers.
      {"root ::= [a-g] root [a-g] | [h-p] root [h-p] | [q-z] root [q-z] | \"#\"", "azi#"}};
  for (const auto& [name, tokenizer] : all) {
    const auto trie = *token_trie::make(tokenizer);
    for (const auto& [grammar, text] : texts) {
      const auto m = make(grammar);
      automaton_state s = m->begin();
      token_masks remembering(*trie, *m);
      std::size_t free_places = 0, at = 0;
      for (const char c : text) {
        free_places += m->free_text_at(s).table != nullptr ? 1 : 0;
        if (name == "tiny" || at++ % 5 == 0) {
          token_mask wanted((tokenizer->size() + 63) / 64);
          for (token t = 0; t < static_cast<token>(tokenizer->size()); ++t) {
            automaton_state next = s;
            const bool taken =
                tokenizer->is_end_of_generation(t) ? m->is_accepting(s) : trie->accept_token(*m, next, t);
            if (taken) wanted[static_cast<std::size_t>(t) / 64] |= std::uint64_t{1} << (t % 64);
          }
          ASSERT_EQ(token_masks(*trie, *m).find(s), wanted) << name << " before '" << c << "' of " << text;
          ASSERT_EQ(remembering.find(s), wanted) << name << " before '" << c << "' of " << text;
        }
        ASSERT_TRUE(m->advance(s, static_cast<std::uint8_t>(c)));
      }
      EXPECT_GE(free_places, grammar == json_text ? 5u : 0u) << "the inside of strings is looked up";
    }
  }
}

TEST(gbnf, knows_what_must_follow) {
  const auto m = make("root ::= \"hello \" (\"world\" | \"there\") \"!\"");
  EXPECT_EQ(m->known_run(m->begin()), "hello ");
  EXPECT_EQ(m->known_run(*after(*m, "hel")), "lo ");
  EXPECT_EQ(m->known_run(*after(*m, "hello ")), "");
  EXPECT_EQ(m->known_run(*after(*m, "hello w")), "orld");
  EXPECT_EQ(m->known_run(*after(*m, "hello world")), "!");
  EXPECT_TRUE(m->is_terminated(*after(*m, "hello world!")));
}

TEST(gbnf, is_a_kind_of_constraint) {
  const auto compiled = [](std::string text) {
    return compile_automaton(text_constraint({grammar_kind::rules, std::move(text)}));
  };
  const auto m = compiled(R"(root ::= "a"+)");
  ASSERT_TRUE(m) << m.error().describe();
  EXPECT_TRUE(accepts(**m, "aaa"));
  EXPECT_FALSE(accepts(**m, ""));
  const auto lark = compiled(R"(start: "a"+)");
  ASSERT_TRUE(lark);
  EXPECT_TRUE(accepts(**lark, "aa"));
}

}  // namespace
}  // namespace redline::grammar
