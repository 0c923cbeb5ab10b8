#include "actors/serving/constrained_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "actors/serving/token_log.hpp"
#include "runtime/base/pause_point.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

std::shared_ptr<const text::tokenizer> tokenizer() {
  static const auto w = *text::tokenizer::from_file(*test::make_tiny_model().file());
  return w;
}
std::shared_ptr<const grammar::token_trie> trie() {
  static const auto i = *grammar::token_trie::make(tokenizer());
  return i;
}

const std::string file = "one\ntwo\r\nthree\n\nlast";

token_log make(copy_options options, std::vector<std::string> files = {file}, std::uint32_t tokens_max = 200) {
  generation_spec g;
  g.prompt = {1, 2, 3};
  g.tokens_max = tokens_max;
  g.context_max = 400;
  g.rules = *make_copy_rules(trie(), files, options);
  return *token_log::make(std::move(g), tokenizer());
}

/// Acts as a model that writes one byte of `asked_for` whenever it is asked, and `inside` within a span, with this
/// log-probability. It gives up where the grammar forbids its byte.
struct answer {
  std::string text;
  std::optional<finish_reason> finished;
  std::uint32_t asked = 0;
};
answer play(token_log& g, std::string_view asked_for, const std::function<token(std::span<const token>)>& inside = {},
            float logprob = -3) {
  answer out;
  auto step = g.begin();
  const auto take = [&] {
    for (; step.is_cut; step = g.go_on()) out.text += step.text;
    out.text += step.text;
    out.finished = step.finished;
  };
  take();
  grammar::grammar_cache grammars(trie());
  while (!out.finished && out.asked < 1000) {
    ++out.asked;
    token next = 0;
    const auto span = g.span_draft();
    if (!span.empty()) {
      next = inside(span);
    } else {
      auto place = g.grammar();
      place.state = g.grammar_state();
      const auto& grammar = *(*grammars.find(place))->grammar;
      const auto t = grammar.trie().longest_token(grammar.automaton(), grammar::automaton_state(place.state),
                                                  asked_for.substr(0, 1));
      if (!t) return out;
      asked_for.remove_prefix(1);
      next = *t;
    }
    step = g.commit(std::vector{next}, std::vector{sampling::emitted_logprob{logprob, {}}});
    take();
  }
  return out;
}

// The model chooses at every fork: c for copy, numbers, g for gen, text, and / for the end. It also writes the
// character before a fork: "<", the quote before a number, the ">" before a text.
TEST(constrained_output, writes_what_a_program_says_and_asks_for_the_forks_only) {
  auto g = make({});
  const auto out = play(g, "<c\"2-3<g>new</gen><c\"5</");
  EXPECT_EQ(out.finished, finish_reason::stop);
  EXPECT_EQ(out.text, "two\r\nthree\nnewlast");
  const auto report = g.copied();
  EXPECT_EQ(report.program, "<copy lines=\"2-3\"/><gen>new</gen><copy lines=\"5-5\"/></program>");
  ASSERT_EQ(report.spans.size(), 2u);
  EXPECT_TRUE(report.spans[0].forced);
  EXPECT_EQ(report.spans[0].tokens, trie()->spell("two\r\nthree\n").size());
  // The log contains the program, with each span after the copy that requested it.
  std::string log;
  for (const token t : g.log().subspan(3)) log += tokenizer()->piece(t);
  EXPECT_EQ(log, "<copy lines=\"2-3\"/>two\r\nthree\n<gen>new</gen><copy lines=\"5-5\"/>last</program>");
}

TEST(constrained_output, tokens_that_a_grammar_decides_have_log_probabilities) {
  for (const std::uint32_t top : {0U, 3U}) {
    generation_spec spec;
    spec.prompt = {1, 2, 3};
    spec.tokens_max = 200;
    spec.context_max = 400;
    spec.logprobs = top;
    spec.rules = *make_copy_rules(trie(), {file}, {});
    auto g = *token_log::make(std::move(spec), tokenizer());
    (void)g.begin();
    token_log::progress step;
    for (const char c : std::string_view("<c")) {
      step = g.commit(std::vector<token>{static_cast<token>(c)}, std::vector{sampling::emitted_logprob{-3, {}}});
    }
    ASSERT_GT(step.tokens.size(), 1u) << "the model chose c, and the rest is decided";
    ASSERT_EQ(step.logprobs.size(), step.tokens.size());
    EXPECT_EQ(step.logprobs[0].logprob, -3.0F);
    EXPECT_EQ(step.logprobs[1].logprob, 0.0F);
    ASSERT_EQ(step.logprobs[1].top.size(), top == 0 ? 0u : 1u);
    if (top > 0) {
      EXPECT_EQ(step.logprobs[1].top[0].id, step.tokens[1]);
    }
  }
}

// A token that the grammar decides is reported in the same way whether the session or a draft wrote it.
TEST(constrained_output, a_decided_token_has_one_log_probability_however_it_comes) {
  const auto schema = R"({"type":"object","properties":{"temperature":{"enum":[10,20]}},"required":["temperature"],)"
                      R"("additionalProperties":false})";
  const auto log = [&] {
    generation_spec spec;
    spec.prompt = {1, 2, 3};
    spec.tokens_max = 200;
    spec.context_max = 400;
    spec.logprobs = 2;
    spec.rules = *make_text_rules(trie(), {.text = schema});
    return *token_log::make(std::move(spec), tokenizer());
  };
  const sampling::emitted_logprob chosen{-3, {{7, -1}, {8, -2}}};
  // The answer's tokens: the model is asked for a byte wherever the grammar leaves a choice.
  std::vector<token> whole;
  const std::string_view text = R"({"temperature":20})";
  auto alone = log();
  grammar::grammar_cache grammars(trie());
  for (auto step = alone.begin(); !step.finished;) {
    whole.insert(whole.end(), step.tokens.begin(), step.tokens.end());
    std::size_t bytes = 0;
    for (const token t : whole) bytes += tokenizer()->piece(t).size();
    auto place = alone.grammar();
    place.state = alone.grammar_state();
    const auto& grammar = *(*grammars.find(place))->grammar;
    const auto t =
        grammar.trie().longest_token(grammar.automaton(), grammar::automaton_state(place.state), text.substr(bytes, 1));
    ASSERT_TRUE(t);
    step = alone.commit(std::vector{*t});
    if (step.finished) whole.insert(whole.end(), step.tokens.begin(), step.tokens.end());
  }
  const auto told = [&](std::size_t at_once) {  // tokens per pass
    auto g = log();
    auto step = g.begin();
    std::vector<token> tokens = step.tokens;
    auto logprobs = step.logprobs;
    while (!step.finished && tokens.size() < whole.size()) {
      const auto rest = std::span(whole).subspan(tokens.size());
      const auto pass = rest.first(std::min(rest.size(), at_once));
      step = g.commit(pass, std::vector<sampling::emitted_logprob>(pass.size(), chosen));
      tokens.insert(tokens.end(), step.tokens.begin(), step.tokens.end());
      logprobs.insert(logprobs.end(), step.logprobs.begin(), step.logprobs.end());
    }
    EXPECT_EQ(tokens, whole);
    return logprobs;
  };
  const auto singly = told(1);
  const auto decided =
      std::ranges::count_if(singly, [](const auto& one) { return one.logprob == 0 && one.top.size() == 1; });
  EXPECT_GT(decided, 4);
  EXPECT_LT(static_cast<std::size_t>(decided), singly.size());
  for (const std::size_t at_once : {2U, 5U, 30U}) EXPECT_EQ(told(at_once), singly) << at_once;
}

TEST(constrained_output, a_stop_token_ends_an_answer_also_where_the_grammar_decides_it) {
  for (const bool drafts : {false, true}) {
    generation_spec spec;
    spec.prompt = {1, 2, 3};
    spec.tokens_max = 200;
    spec.context_max = 400;
    spec.stop_tokens = {'m'};
    spec.rules = *make_text_rules(trie(), {.text = R"({"enum":["lemma","other"]})"});
    auto g = *token_log::make(std::move(spec), tokenizer());
    auto step = g.begin();
    std::string text;
    for (const std::string_view pass :
         drafts ? std::vector<std::string_view>{"\"lemm"} : std::vector<std::string_view>{"\"", "l", "e"}) {
      if (step.finished) break;
      step = g.commit(std::vector<token>(pass.begin(), pass.end()));
      text += step.text;
    }
    EXPECT_EQ(step.finished, finish_reason::stop) << drafts;
    EXPECT_EQ(text, "\"le") << drafts;
  }
}

TEST(constrained_output, leaves_a_long_span_to_be_spelled_by_others) {
  std::string lines;
  for (int i = 0; i < 999; ++i) lines += "a line of some text\n";
  const auto points_before_all = pause_points_passed;
  const auto spelling = trie()->spell(lines);
  const auto points_of_spelling = pause_points_passed - points_before_all;
  for (const auto trust : {copy_trust::forced, copy_trust::verified}) {
    generation_spec spec;
    spec.prompt = {1, 2, 3};
    spec.tokens_max = 50'000;
    spec.context_max = 60'000;
    spec.rules = *make_copy_rules(trie(), {lines}, {.trust = trust});
    auto g = *token_log::make(std::move(spec), tokenizer());
    auto step = g.begin();
    const auto before = pause_points_passed;
    for (const char c : std::string_view("<c\"1-999")) {
      step = g.commit(std::vector<token>{static_cast<token>(c)}, {});
      ASSERT_FALSE(step.finished);
    }
    EXPECT_LT(10 * (pause_points_passed - before), points_of_spelling);
    EXPECT_TRUE(step.is_cut);
    ASSERT_TRUE(g.untokenized());
    EXPECT_EQ(g.untokenized()->bytes, lines);
    EXPECT_TRUE(g.span_draft().empty());
    g.tokenize_span(g.untokenized()->spell());
    EXPECT_FALSE(g.untokenized());
    std::string text;
    for (step = g.go_on();; step = g.go_on()) {
      text += step.text;
      if (!step.is_cut) break;
    }
    if (trust == copy_trust::forced) {
      EXPECT_EQ(text, lines);
    } else {
      EXPECT_EQ(g.span_draft(), spelling);
    }
  }
}

TEST(constrained_output, a_verified_span_is_what_the_model_would_have_written) {
  auto g = make({.trust = copy_trust::verified});
  const auto all = play(g, "<c\"1-3</", [](auto span) { return span.front(); });
  EXPECT_EQ(all.text, "one\ntwo\r\nthree\n");
  EXPECT_EQ(g.copied().program, "<copy lines=\"1-3\"/></program>");
  EXPECT_FALSE(g.copied().spans.at(0).forced);
  EXPECT_FALSE(g.copied().spans.at(0).refused);

  // The model leaves the span within its second line: the rest is not copied, and the program continues.
  auto h = make({.trust = copy_trust::verified});
  const auto some =
      play(h, "<c\"1-3<g>X</gen></", [](auto span) { return span.front() == 'w' ? token{'Q'} : span.front(); });
  EXPECT_EQ(some.text, "one\ntX");
  EXPECT_EQ(h.copied().program, "<copy lines=\"1-1\"/><gen>t</gen><gen>X</gen></program>");
  EXPECT_EQ(h.copied().spans.at(0).tokens, trie()->spell("one\n").size() + 1);
  EXPECT_TRUE(h.copied().spans.at(0).refused);
  std::string log;
  for (const token t : h.log().subspan(3)) log += tokenizer()->piece(t);
  EXPECT_EQ(log, "<copy lines=\"1-3\"/>one\nt<gen>X</gen></program>");
}

// Nothing is added to the log then, not even by the grammar; the next round asks at the same position.
TEST(constrained_output, a_span_refused_at_its_first_token_leaves_the_log_as_it_was) {
  auto g = make({.trust = copy_trust::verified});
  auto step = g.begin();
  for (const char c : std::string_view("<c\"1-2")) step = g.commit(std::vector<token>{static_cast<token>(c)});
  ASSERT_FALSE(g.span_draft().empty());
  const auto before = g.log_count();
  step = g.commit(std::vector<token>{'Q'});
  EXPECT_FALSE(step.finished);
  EXPECT_TRUE(step.tokens.empty());
  EXPECT_EQ(step.agreed_count, before);
  EXPECT_EQ(g.log_count(), before);
  EXPECT_TRUE(g.span_draft().empty());
  step = g.commit(std::vector<token>{'<', '/'});
  EXPECT_EQ(step.finished, finish_reason::stop);
  EXPECT_EQ(g.copied().program, "</program>");
  EXPECT_TRUE(g.copied().spans.at(0).refused);
}

TEST(constrained_output, auto_forces_a_span_that_the_model_is_sure_of) {
  const auto how_with = [](float logprob) {
    auto g = make({.trust = copy_trust::automatic, .confidence_min = 0.5F});
    play(
        g, "<c\"1-3</", [](auto span) { return span.front(); }, logprob);
    EXPECT_EQ(g.logprobs(), std::optional(0u));
    return g.copied().spans.at(0).forced;
  };
  EXPECT_TRUE(how_with(-0.01F));
  EXPECT_FALSE(how_with(-1.0F));
}

// The first token, "<copy", begins before the choice that it makes, but counts as well.
TEST(constrained_output, auto_asks_how_sure_the_model_was_of_every_token_that_chose) {
  auto m = test::make_tiny_model();
  test::add_program_tokens(m);
  const auto words = *text::tokenizer::from_file(*m.file());
  const auto rules = *make_copy_rules(*grammar::token_trie::make(words), {file},
                                      {.trust = copy_trust::automatic, .confidence_min = 0.5F});
  const auto is_forced = [&](std::string_view doubted) {
    constrained_output g(rules);
    grammar::step_count steps;
    std::string_view left = "<copy lines=\"2-3\"/>";
    std::string text;
    while (!left.empty()) {
      std::string_view piece;
      if (const auto next = g.next_decided(steps)) {
        g.append_decided(*next, text);
        piece = words->piece(next->id);
      } else {
        const auto t = *rules->grammar->trie().longest_token(rules->grammar->automaton(),
                                                             grammar::automaton_state(g.grammar_state()), left);
        piece = words->piece(t);
        EXPECT_EQ(g.accept_token(t, piece == doubted ? -1.0F : 0.0F, text), constrained_output::acceptance::taken);
      }
      EXPECT_TRUE(left.starts_with(piece));
      left.remove_prefix(piece.size());
    }
    while (const auto next = g.next_decided(steps)) g.append_decided(*next, text);
    return g.span_left().empty();
  };
  EXPECT_TRUE(is_forced(""));
  EXPECT_TRUE(is_forced("=\"")) << "the number comes after the doubted token";
  EXPECT_FALSE(is_forced("<copy"));
  EXPECT_FALSE(is_forced("2"));
  EXPECT_FALSE(is_forced("3"));
}

TEST(constrained_output, auto_believes_anchors_that_are_right_and_no_others) {
  const auto span_with = [](const std::string& program) {
    auto g = make({.trust = copy_trust::automatic, .anchors = true});
    const auto out = play(
        g, program, [](auto span) { return span.front(); }, 0);
    EXPECT_EQ(out.finished, finish_reason::stop) << program;
    EXPECT_FALSE(g.logprobs());
    EXPECT_EQ(g.copied().program, "<copy lines=\"1-3\"/></program>");  // anchors are not part of the program
    return g.copied().spans.at(0);
  };
  const auto right = span_with("<c\"1-3\"one\"\"three\"</");
  EXPECT_TRUE(right.forced);
  EXPECT_EQ(right.reason, span_reason::anchors);
  const auto wrong = span_with("<c\"1-3\"one\"\"last\"</");
  EXPECT_FALSE(wrong.forced);
  EXPECT_EQ(wrong.reason, span_reason::doubt);
  // An anchor that also matches a line nearby is no evidence.
  auto twins = make({.trust = copy_trust::automatic, .anchors = true}, {"{\n  a\n}\n{\n  b\n}\n"});
  play(
      twins, "<c\"2-3\"a\"\"}\"</", [](auto span) { return span.front(); }, 0);
  EXPECT_FALSE(twins.copied().spans.at(0).forced);
}

TEST(constrained_output, guesses_how_programs_go_on) {
  auto g = make({});
  g.begin();
  std::string text;
  for (const token t : g.likely_draft()) text += tokenizer()->piece(t);
  EXPECT_EQ(text, "<copy lines=\"1-5\"/>");
  auto asked_for_anchors = make({.anchors = true});
  asked_for_anchors.begin();
  text.clear();
  for (const token t : asked_for_anchors.likely_draft()) text += tokenizer()->piece(t);
  EXPECT_EQ(text, "<copy lines=\"1-5\" first=\"one\" last=\"last\"/>");
  // The last position is left to the target model.
  auto short_of_room = make({}, {file}, 3);
  short_of_room.begin();
  EXPECT_EQ(short_of_room.likely_draft().size(), 2u);
}

TEST(constrained_output, knows_files_and_token_spans) {
  auto g = make({.line_spans = false, .token_spans = true}, {"a b", "the end"});
  const auto out = play(g, "<c\"2\"1-2</");
  const auto tokens = trie()->spell("the end");
  EXPECT_EQ(out.text, std::string(tokenizer()->piece(tokens[0])) + std::string(tokenizer()->piece(tokens[1])));
  EXPECT_EQ(g.copied().program, "<copy file=\"2\" tokens=\"1-2\"/></program>");
}

TEST(constrained_output, an_answer_that_breaks_off_reports_what_it_copied) {
  auto g = make({}, {file}, 20);
  const auto out = play(g, "<c\"1-3</");
  EXPECT_EQ(out.finished, finish_reason::length);
  EXPECT_EQ(g.output_count(), 20u);
  const std::vector<copy::document> files = {copy::document(file)};
  const auto p = copy::parse_program(g.copied().program, copy::shape_of(files));
  ASSERT_TRUE(p) << p.error().describe();
  EXPECT_EQ(*copy::resolve(*p, files), out.text);
}

TEST(constrained_output, cuts_drafts_where_the_model_is_not_asked) {
  auto g = make({});
  g.begin();
  auto draft = tokenizer()->encode("<copy lines=\"1-1\"/>one\n");
  const auto usable = g.usable(draft);
  std::string text;
  for (const token t : usable) text += tokenizer()->piece(t);
  EXPECT_EQ(text, "<copy lines=\"1-1\"/>");
  EXPECT_TRUE(g.usable(tokenizer()->encode("x")).empty());
}

TEST(constrained_output, follows_a_draft_for_a_limited_number_of_steps) {
  const std::string letters(2000, 'x');
  const auto rules =
      *make_text_rules(trie(), {.text = R"({"anyOf":[{"const":")" + letters + R"("},{"type":"integer"}]})"});
  const constrained_output output(rules);
  const auto draft = tokenizer()->encode('"' + letters + '"');
  grammar::step_count steps(constrained_output::draft_steps_max);
  const auto usable = output.usable(draft, steps);
  EXPECT_LT(steps.taken(), 300'000u);
  EXPECT_GT(usable.size(), 64u);
  EXPECT_LT(usable.size(), draft.size());
  EXPECT_TRUE(std::equal(usable.begin(), usable.end(), draft.begin()));
}

TEST(constrained_output, a_decided_token_takes_a_limited_number_of_steps) {
  const auto rules = *make_text_rules(trie(), {.text = R"({"const":")" + std::string(3000, 'x') + R"("})"});
  constrained_output output(rules);
  std::string text;
  for (int tokens = 0; tokens < 300; ++tokens) {
    grammar::step_count steps;
    const auto next = output.next_decided(steps);
    ASSERT_TRUE(next);
    EXPECT_GT(steps.taken(), 0U);
    EXPECT_LT(steps.taken(), 256U * 20);
    output.append_decided(*next, text);
  }
}

TEST(constrained_output, fails_where_a_grammar_has_more_readings_than_are_followed) {
  generation_spec spec;
  spec.prompt = {1, 2, 3};
  spec.tokens_max = 200;
  spec.context_max = 400;
  spec.rules = *make_text_rules(
      trie(), {grammar::grammar_kind::rules, "root ::= a a a a a a a a\na ::= \"x\" | \"x\" a \"y\" | \"x\" a a"});
  auto g = *token_log::make(std::move(spec), tokenizer());
  auto step = g.begin();
  for (int i = 0; i < 100 && !step.finished; ++i) {
    // No draft continues after such a position, and no mask forbids the token that leads to it.
    const auto usable = g.usable(std::vector<token>(8, 'x'));
    ASSERT_FALSE(usable.empty());
    step = g.commit(std::vector<token>{'x'});
  }
  EXPECT_EQ(step.finished, finish_reason::failed);
  ASSERT_TRUE(step.why_not);
  EXPECT_EQ(step.why_not->code, errc::invalid_argument);
  EXPECT_NE(step.why_not->context.find("in more ways than can be followed"), std::string::npos);
}

TEST(constrained_output, refuses_a_token_that_the_grammar_forbids) {
  auto g = make({});
  g.begin();
  const auto step = g.commit(std::vector<token>{'x'});
  EXPECT_EQ(step.finished, finish_reason::failed);
  EXPECT_TRUE(step.why_not.has_value());
}

TEST(constrained_output, json_ends_with_its_value) {
  generation_spec r;
  r.prompt = {1};
  r.tokens_max = 50;
  r.context_max = 100;
  r.rules = *make_text_rules(trie(), {.text = R"({"redline:blanks":0,"const":{"a":[1,true]}})"});
  auto fixed = *token_log::make(r, tokenizer());
  auto step = fixed.begin();  // the grammar leaves no choice
  std::string text = step.text;
  for (; step.is_cut; text += step.text) step = fixed.go_on();
  EXPECT_EQ(text, R"({"a":[1,true]})");
  EXPECT_EQ(step.finished, finish_reason::stop);
  r.rules = *make_text_rules(trie(), {.text = R"({"type":"integer"})"});
  auto number = *token_log::make(r, tokenizer());
  number.begin();
  EXPECT_FALSE(number.commit(std::vector<token>{'1'}).finished);
  EXPECT_EQ(number.commit(std::vector<token>{test::tiny_model::end_of_text + 2}).finished, finish_reason::stop);
}

}  // namespace
}  // namespace redline::actors
