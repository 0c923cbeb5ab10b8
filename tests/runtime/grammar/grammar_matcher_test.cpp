#include "runtime/grammar/grammar_matcher.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/copy/program.hpp"
#include "runtime/grammar/copy_grammar.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "runtime/grammar/syntax/steps.hpp"
#include "tests/runtime/grammar/grammar_fixture.hpp"
#include "tests/runtime/grammar/schema_samples.hpp"
#include "tests/support/rounds.hpp"

namespace redline::grammar {
namespace {

std::shared_ptr<const token_trie> make_trie(std::shared_ptr<const text::tokenizer> tokenizer) {
  const auto trie = token_trie::make(std::move(tokenizer));
  EXPECT_TRUE(trie) << trie.error().describe();
  return *trie;
}

/// The mask by definition: tries each token alone, byte by byte.
token_mask try_every_token(const token_trie& trie, const byte_automaton& m, const automaton_state& s) {
  token_mask out((trie.tokenizer().size() + 63) / 64);
  for (token t = 0; t < static_cast<token>(trie.tokenizer().size()); ++t) {
    automaton_state after = s;
    const bool taken = trie.tokenizer().is_end_of_generation(t) ? m.is_accepting(s) : trie.accept_token(m, after, t);
    if (taken) out[static_cast<std::size_t>(t) / 64] |= std::uint64_t{1} << (t % 64);
  }
  return out;
}

std::vector<std::pair<std::string, std::shared_ptr<const text::tokenizer>>> all_tokenizers() {
  auto all = test::real_tokenizers();
  all.emplace_back("tiny", test::tiny_tokenizer());
  all.emplace_back("programs", test::program_tokenizer());
  return all;
}

TEST(token_trie, masks_are_what_trying_every_token_gives) {
  const copy_grammar programs({.files = {{120, 0}, {7, 0}}});
  const auto json = *compile_schema(
      R"({"type":"object","properties":{"name":{"type":"string"},"n":{"enum":[1,12,"x"]}},"required":["name"]})");
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    const auto trie = make_trie(tokenizer);
    const std::pair<const byte_automaton*, const char*> texts[] = {
        {&programs, "<gen>a <b </ge </gen><copy file=\"1\" lines=\"11-119\"/>"},
        {json.get(), "{ \"name\": \"a\\u00e9 \xc3\xa9\", \"n\": 12}"}};
    for (const auto& [m, text] : texts) {
      automaton_state s = m->begin();
      std::size_t position = 0;
      for (const char c : std::string_view(text)) {
        if (name == "tiny" || position++ % 9 == 0) {
          ASSERT_EQ(token_masks(*trie, *m).find(s), try_every_token(*trie, *m, s))
              << name << " before '" << c << "' of " << text;
        }
        ASSERT_TRUE(m->is_valid(s));
        ASSERT_TRUE(m->advance(s, static_cast<std::uint8_t>(c))) << name << " at '" << c << "' of " << text;
      }
    }
  }
}

TEST(token_trie, masks_are_right_at_every_byte_of_a_text_s_end) {
  const copy_grammar programs({.files = {{9, 0}}});
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    const auto trie = make_trie(tokenizer);
    automaton_state s = programs.begin();
    for (const char c : std::string_view("<gen>")) ASSERT_TRUE(programs.advance(s, static_cast<std::uint8_t>(c)));
    for (const char c : copy::gen_end) {
      ASSERT_EQ(token_masks(*trie, programs).find(s), try_every_token(*trie, programs, s))
          << name << " before '" << c << "'";
      ASSERT_TRUE(programs.advance(s, static_cast<std::uint8_t>(c)));
    }
  }
}

// Random text reaches strings with and without a bound, half-written characters, escapes, names and numbers.
TEST(token_trie, masks_are_right_in_randomly_reached_states) {
  const std::string schemas[] = {
      R"({"type":"string"})", R"({"type":"string","maxLength":9})",
      R"({"type":"string","minLength":3,"maxLength":300})", "{}",
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"string","maxLength":40}},"b":{"type":["integer","string"]}}})"};
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    const auto trie = make_trie(tokenizer);
    std::mt19937 random(7);
    std::vector<std::shared_ptr<const byte_automaton>> all{
        std::make_shared<copy_grammar>(copy::program_shape{.files = {{44, 0}, {3, 0}}, .anchors = true})};
    for (const auto& schema : schemas) all.push_back(*compile_schema(schema));
    for (const auto& m : all) {
      automaton_state s = m->begin();
      for (std::size_t step = 0; step < test::rounds(24, 8); ++step) {
        const auto mask = token_masks(*trie, *m).find(s);
        ASSERT_EQ(mask, try_every_token(*trie, *m, s))
            << name << ", byte_automaton " << (&m - all.data()) << ", step " << step;
        // Prefers tokens with bytes above 0x7f, so that half-written characters occur.
        token chosen = -1;
        std::ptrdiff_t most = -1;
        for (std::size_t tries = 1 + random() % 8; tries > 0; --tries) {
          const token t = test::random_token(mask, random);
          if (t < 0 || tokenizer->is_end_of_generation(t)) continue;
          const auto bytes = tokenizer->piece(t);
          const auto high =
              std::count_if(bytes.begin(), bytes.end(), [](char c) { return static_cast<std::uint8_t>(c) > 0x7f; });
          if (high > most) most = high, chosen = t;
        }
        const bool accepted = chosen >= 0 && trie->accept_token(*m, s, chosen);
        if (!accepted || m->is_terminated(s) || m->awaits_span(s)) s = m->begin();
      }
    }
  }
}

TEST(token_trie, spells_any_bytes) {
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    const auto trie = make_trie(tokenizer);
    for (const std::string text : {"opy lines=\"", " two  blanks", "\xe2\x96\x81literal", "\t\n\r", "</gen>", "a"}) {
      std::string back;
      for (const token t : trie->spell(text)) back += tokenizer->piece(t);
      EXPECT_EQ(back, text) << name;
    }
  }
}

TEST(compiled_grammar, jumps_forward_over_the_only_continuation) {
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    const auto rules = std::make_shared<copy_grammar>(copy::program_shape{.files = {{1, 0}}});
    const compiled_grammar grammar(rules, make_trie(tokenizer));
    automaton_state s = rules->begin();
    std::string text;
    const auto write = [&](std::string_view bytes) {
      for (const char c : bytes) ASSERT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c)));
    };
    const auto write_jump_forward = [&] {
      std::string written;
      for (auto t = grammar.jump_forward(s); t; t = grammar.jump_forward(s)) {
        written += tokenizer->piece(*t);
        ASSERT_TRUE(grammar.accept_token(s, *t));
      }
      text += "|" + written;
    };
    write_jump_forward();
    write("<c");
    write_jump_forward();
    EXPECT_TRUE(rules->awaits_span(s)) << "a file of one line can be copied in one way only";
    rules->resume(s, 0);
    write_jump_forward();
    write("</");
    write_jump_forward();
    EXPECT_TRUE(rules->is_terminated(s));
    EXPECT_EQ(text, "||opy lines=\"1-1\"/>||program>") << name;
  }
}

TEST(compiled_grammar, refuses_any_token_but_the_jump_forward_one) {
  const auto rules = std::make_shared<copy_grammar>(copy::program_shape{.files = {{5, 0}}});
  const auto tokenizer = test::tiny_tokenizer();
  const compiled_grammar grammar(rules, make_trie(tokenizer));
  automaton_state s = rules->begin();
  for (const char c : std::string("</pro")) ASSERT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c)));
  const auto only = grammar.jump_forward(s);
  ASSERT_TRUE(only);
  automaton_state other = s;
  EXPECT_TRUE(grammar.accept_token(s, *only));
  EXPECT_FALSE(grammar.accept_token(other, tokenizer->encode("a").front()));
}

TEST(compiled_grammar, leaves_the_last_token_before_a_choice_to_the_model) {
  struct test_case {
    std::shared_ptr<const byte_automaton> automaton;
    std::string begun;
    std::string only;  // the only continuation
  };
  const auto programs = std::make_shared<copy_grammar>(copy::program_shape{.files = {{12, 0}}});
  const auto json = *compile_schema(
      R"({"type":"object","properties":{"name":{"type":"string"},"n":{"enum":[17,170,"x"]}},"required":["name","n"],"additionalProperties":false})");
  const auto number = *compile_schema(R"({"enum":[17,170]})");
  const std::string letters = '"' + std::string(600, 'a') + '"';  // longer than jump_bytes_max
  const auto fixed = *compile_schema("{\"const\":" + letters + "}");
  const test_case cases[] = {{programs, "", "<"},
                             {programs, "<copy", " lines=\""},
                             {programs, "<g", "en>"},
                             {programs, "<copy lines=\"12-", "12\"/>"},
                             {programs, "</", "program>"},
                             {json, "", "{"},
                             {json, "{\"", "name\":"},
                             {json, "{\"name\":\"a\",\"", "n\":"},
                             {json, "{\"name\":\"a\",\"n\":1", "7"},
                             {number, "", "17"},
                             {fixed, "", letters}};
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    const auto trie = make_trie(tokenizer);
    for (const auto& p : cases) {
      const compiled_grammar grammar(p.automaton, trie);
      automaton_state s = p.automaton->begin();
      for (const char c : p.begun) ASSERT_TRUE(p.automaton->advance(s, static_cast<std::uint8_t>(c))) << p.begun;
      std::string_view left = p.only;
      for (auto t = grammar.jump_forward(s); t; t = grammar.jump_forward(s)) {
        ASSERT_TRUE(left.starts_with(tokenizer->piece(*t))) << name << " after '" << p.begun << "'";
        ASSERT_TRUE(grammar.accept_token(s, *t));
        left.remove_prefix(tokenizer->piece(*t).size());
      }
      if (p.automaton->awaits_span(s) || p.automaton->is_terminated(s)) {
        EXPECT_EQ(left, "") << name;
        continue;
      }
      EXPECT_EQ(trie->spell(left).size(), 1u) << name << " after '" << p.begun << "': '" << left << "'";
      // Every token of the mask can follow, including one that extends into the choice.
      const auto mask = token_masks(*trie, *p.automaton).find(s);
      for (token t = 0; t < static_cast<token>(tokenizer->size()); ++t) {
        if ((mask[static_cast<std::size_t>(t) / 64] >> (t % 64) & 1) == 0) continue;
        automaton_state after = s;
        EXPECT_TRUE(grammar.accept_token(after, t))
            << name << " after '" << p.begun << "': '" << tokenizer->piece(t) << "'";
      }
    }
  }
}

TEST(compiled_grammar, jumps_forward_again_after_a_token_that_reaches_into_a_choice) {
  const auto tokenizer = test::program_tokenizer();
  const auto rules = std::make_shared<copy_grammar>(copy::program_shape{.files = {{12, 0}}});
  const auto trie = make_trie(tokenizer);
  const compiled_grammar grammar(rules, trie);
  std::string text;  // the model's tokens in brackets
  automaton_state s = rules->begin();
  for (std::string_view left = "<copy lines=\"12-12\"/></program>"; !left.empty();) {
    if (rules->awaits_span(s)) rules->resume(s, 0);
    const auto only = grammar.jump_forward(s);
    const auto t = only ? only : trie->longest_token(*rules, s, left);
    ASSERT_TRUE(t);
    const std::string piece(tokenizer->piece(*t));
    ASSERT_TRUE(left.starts_with(piece));
    left.remove_prefix(piece.size());
    text += only ? piece : "[" + piece + "]";
    ASSERT_TRUE(grammar.accept_token(s, *t));
  }
  EXPECT_EQ(text, "[<copy] lines[=\"][1][2]-12\"/>[</]program>");
}

/// The result of jump_forward by definition: the next byte is decided if only one of all 256 can follow.
std::optional<token> try_every_byte(const token_trie& trie, const byte_automaton& m, automaton_state s) {
  if (m.unconstrained_tokens(s) > 0) return std::nullopt;
  std::string bytes;
  while (bytes.size() < 256) {
    if (m.free_text_at(s).table != nullptr || m.is_accepting(s) || m.awaits_span(s)) break;
    std::vector<std::pair<char, automaton_state>> possible;
    for (unsigned byte = 0; byte < 256; ++byte) {
      automaton_state after = s;
      if (m.advance(after, static_cast<std::uint8_t>(byte))) possible.emplace_back(static_cast<char>(byte), after);
    }
    if (possible.size() != 1) break;
    bytes += possible.front().first;
    s = possible.front().second;
  }
  const auto tokens = trie.spell(bytes);
  const bool before_choice = !m.awaits_span(s) && !m.is_terminated(s);
  return tokens.size() > (before_choice ? 1U : 0U) ? std::optional(tokens.front()) : std::nullopt;
}

TEST(compiled_grammar, jumps_forward_as_trying_every_byte_says) {
  std::vector<std::shared_ptr<const byte_automaton>> all{
      std::make_shared<copy_grammar>(copy::program_shape{.files = {{44, 7}, {3, 0}}, .token_spans = true}),
      std::make_shared<copy_grammar>(copy::program_shape{.files = {{44, 0}}, .anchors = true})};
  test::schema_source schemas(5);
  for (std::size_t i = 0; i < test::rounds(600, 60); ++i) {
    if (auto made = compile_schema(schemas.next())) all.push_back(std::move(*made));
  }
  const auto vocabularies = all_tokenizers();
  std::vector<std::shared_ptr<const token_trie>> tries;
  for (const auto& [name, tokenizer] : vocabularies) tries.push_back(make_trie(tokenizer));
  std::mt19937 random(9);
  std::size_t decided = 0;
  for (const auto& m : all) {
    const auto& trie = *tries[random() % tries.size()];
    const compiled_grammar grammar(m, std::shared_ptr<const token_trie>(tries.front(), &trie));
    automaton_state s = m->begin();
    for (int step = 0; step < 80 && !m->is_terminated(s) && !m->awaits_span(s); ++step) {
      const auto only = try_every_byte(trie, *m, s);
      ASSERT_EQ(grammar.jump_forward(s), only) << (&m - all.data()) << ", step " << step;
      decided += only ? 1 : 0;
      automaton_state taken = s;
      step_count steps;
      ASSERT_EQ(grammar.take_jump_forward(taken, steps), only);
      if (only) {
        automaton_state accepted = s;
        ASSERT_TRUE(grammar.accept_token(accepted, *only));
        ASSERT_TRUE(std::ranges::equal(accepted.cells(), taken.cells()));
      }
      if (random() % 64 == 0) {
        ASSERT_EQ(token_masks(trie, *m).find(s), try_every_token(trie, *m, s));
      }
      // Whitespace is rare, so that the text makes progress.
      std::vector<automaton_state> next;
      for (unsigned byte = random() % 8 == 0 ? 0 : 0x21; byte < 256; ++byte) {
        automaton_state after = s;
        if (m->advance(after, static_cast<std::uint8_t>(byte))) next.push_back(after);
      }
      if (next.empty()) break;
      s = next[random() % next.size()];
    }
  }
  EXPECT_GT(decided, test::rounds(500, 50));
}

/// The steps and tokens needed to write what must follow, with the first allowed byte at every choice.
std::pair<std::uint64_t, std::uint64_t> write_all(const compiled_grammar& grammar, std::size_t bytes_max) {
  const auto& m = grammar.automaton();
  step_count steps;
  std::uint64_t tokens = 0;
  automaton_state s = m.begin();
  for (std::size_t bytes = 0; bytes < bytes_max && !m.is_terminated(s) && !m.is_accepting(s); ++tokens) {
    if (const auto t = grammar.take_jump_forward(s, steps)) {
      bytes += grammar.trie().tokenizer().piece(*t).size();
      continue;
    }
    automaton_state after = s;
    for (unsigned byte = 0x21; after = s, !m.advance(after, static_cast<std::uint8_t>(byte), steps); ++byte) {
    }
    s = after;
    ++bytes;
  }
  return {steps.taken(), tokens};
}

TEST(compiled_grammar, what_must_follow_takes_steps_in_proportion_to_its_tokens) {
  const auto trie = make_trie(test::tiny_tokenizer());
  for (const auto& [name, make] : test::large_schemas()) {
    for (const std::size_t bytes : {1'000, 4'000, 16'000, 30'000}) {
      const compiled_grammar grammar(*compile_schema(make(bytes)), trie);
      const auto [steps, tokens] = write_all(grammar, bytes);
      // Tokenizing 256 bytes, and at most 256 attempts, each of which takes the logarithm of the number of texts.
      EXPECT_LT(steps, tokens * 256 * (16 + 20)) << name << " of " << bytes << " bytes";
    }
    const compiled_grammar small(*compile_schema(make(4'000)), trie), large(*compile_schema(make(30'000)), trie);
    const auto [small_steps, small_tokens] = write_all(small, 2'000);
    const auto [large_steps, large_tokens] = write_all(large, 2'000);
    EXPECT_LT(large_steps * small_tokens, 3 * small_steps * large_tokens)
        << name << ": what was written and what follows cost nothing";
  }
}

TEST(grammar_matcher, in_a_copied_span_no_operation_may_begin) {
  const auto trie = make_trie(test::program_tokenizer());
  const auto& tokenizer = trie->tokenizer();
  grammar_cache cache(trie);
  auto c = copy_constraint({.files = {{5, 0}}});
  c.copied_min = 0.05F;
  const auto entry = *cache.find(c);
  const auto& programs = dynamic_cast<const copy_grammar&>(entry->grammar->automaton());
  auto s = programs.begin();
  for (const char byte : std::string_view("<copy lines=\"1-2\"/>")) {
    ASSERT_TRUE(programs.advance(s, static_cast<std::uint8_t>(byte)));
  }
  programs.resume(s, 2);
  c.state.assign(s.cells().begin(), s.cells().end());
  grammar_matcher rows(*entry, c);
  for (int row = 0; row < 2; ++row) {
    EXPECT_EQ(rows.copied_min(), 0.05F);
    const auto mask = rows.next_token_mask();
    int forbidden = 0;
    for (token t = 0; t < static_cast<token>(tokenizer.size()); ++t) {
      auto after = programs.begin();
      const bool is_text = !tokenizer.piece(t).empty() && !trie->accept_token(programs, after, t);
      EXPECT_EQ(sampling::allows(mask, t), is_text) << t;
      forbidden += is_text ? 0 : 1;
    }
    EXPECT_GT(forbidden, 3) << "at least <, </ and <copy";
    EXPECT_TRUE(rows.accept_token('a'));
  }
  EXPECT_FALSE(rows.copied_min()) << "the span is over";
  EXPECT_TRUE(sampling::allows(rows.next_token_mask(), '<'));
}

TEST(grammar_cache, refuses_malformed_constraints_and_compiles_evicted_grammars_again) {
  grammar_cache cache(make_trie(test::tiny_tokenizer()));
  auto c = copy_constraint({.files = {{3, 0}}});
  ASSERT_TRUE(cache.find(c));
  c.state = {1, 2, 3};
  EXPECT_FALSE(cache.find(c));
  c.state = {9, 0, 1, 0, 0, 4, 0, 0};
  EXPECT_FALSE(cache.find(c)) << "line 4 of 3";
  c.state.assign(1000, 0);
  EXPECT_FALSE(cache.find(c));
  EXPECT_FALSE(cache.find({.kind = grammar_kind::last_}));
  EXPECT_FALSE(cache.find({.kind = grammar_kind::copy, .text = {}, .shape = {1}}));
  EXPECT_FALSE(cache.find({.kind = grammar_kind::copy, .text = {}, .shape = {2, 0}}));
  EXPECT_FALSE(cache.find(text_constraint({.text = "{"})));
  for (std::uint32_t lines = 1; lines < 2 * grammar_cache::grammars_max; ++lines) {
    ASSERT_TRUE(cache.find(copy_constraint({.files = {{lines, 0}}})));
  }
  EXPECT_TRUE(cache.find(copy_constraint({.files = {{3, 0}}})));
  auto lenient = copy_constraint({.files = {{3, 0}}});
  lenient.copied_min = 0.5F;
  EXPECT_NE(*cache.find(copy_constraint({.files = {{3, 0}}})), *cache.find(lenient)) << "spans end elsewhere";
  grammar_cache without_trie(nullptr);
  EXPECT_FALSE(without_trie.find(copy_constraint({.files = {{3, 0}}})));
}

TEST(grammar_cache, keeps_large_grammars_up_to_a_number_of_bytes) {
  grammar_cache cache(make_trie(test::tiny_tokenizer()));
  const auto large = [](int i) {
    return text_constraint({grammar_kind::rules, "root ::= \"" + std::string(30'000, 'x') + std::to_string(i) + "\""});
  };
  const auto first = cache.find(large(0), 1);
  ASSERT_TRUE(first) << first.error().describe();
  const auto size = (*first)->grammar->automaton().size_bytes();
  EXPECT_GT(size, 1u << 20);
  const auto count = static_cast<int>(grammar_cache::grammar_bytes_max / size) + 1;
  ASSERT_LT(count, static_cast<int>(grammar_cache::grammars_max)) << "the number of grammars is not what bounds them";
  for (int i = 1; i < count; ++i) ASSERT_TRUE(cache.find(large(i), static_cast<std::uint64_t>(i) + 1));
  EXPECT_EQ(cache.find_named(1), nullptr);
  EXPECT_NE(cache.find_named(static_cast<std::uint64_t>(count)), nullptr);
  EXPECT_TRUE(cache.find(large(0), 1));
}

// From any cells that pass is_valid, masks and tokens stay within the grammar's tables.
TEST(grammar_cache, every_valid_state_can_be_followed_safely) {
  std::mt19937 random(3);
  grammar_cache cache(make_trie(test::tiny_tokenizer()));
  std::size_t valid = 0;
  for (std::size_t i = 0; i < test::rounds(60'000, 5'000); ++i) {
    auto c =
        i % 2 == 0
            ? copy_constraint({.files = {{30, 5}, {2, 9}}, .token_spans = true})
            : text_constraint(
                  {.text =
                       R"({"type":"object","properties":{"ab":{"type":["string","null"]},"abc":{"type":"array","items":{"enum":[1,12]}}}})"});
    c.state.resize(i % 2 == 0 ? 8 : 1 + 4 * (random() % 4));
    for (auto& cell : c.state) cell = random() % (random() % 3 == 0 ? 40 : 6);
    const auto found = cache.find(c);
    if (!found) continue;
    ++valid;
    grammar_matcher rows(**found, c);
    for (int step = 0; step < 4; ++step) {
      const auto mask = rows.next_token_mask();
      const token t = mask.empty() ? 5 : test::random_token(mask, random);
      if (t < 0 || !rows.accept_token(t)) break;
    }
  }
  EXPECT_GT(valid, 100u);
}

/// Writes a program with random tokens under the grammar's masks.
std::string write_at_random(grammar_cache& cache, const text::tokenizer& tokenizer, const copy::program_shape& shape,
                            std::mt19937& random) {
  constraint c = copy_constraint(shape);
  const auto entry = *cache.find(c);
  const auto& rules = dynamic_cast<const copy_grammar&>(entry->grammar->automaton());
  automaton_state s = rules.begin();
  std::string text;
  for (int tokens = 0; tokens < 400 && !rules.is_terminated(s); ++tokens) {
    if (rules.awaits_span(s)) {
      rules.resume(s, 0);
      continue;
    }
    c.state.assign(s.cells().begin(), s.cells().end());
    grammar_matcher rows(**cache.find(c), c);
    const auto mask = rows.next_token_mask();
    token t = test::random_token(mask, random);
    // Random tokens close a text or a program once in ten thousand times, so this helps a little.
    const auto position = rules.unpack(s);
    std::optional<token> end;
    if (position.at == copy::program_state::step::gen_body && (position.matched > 0 || random() % 8 == 0)) {
      end = entry->grammar->trie().longest_token(rules, s, std::string_view("</gen>").substr(position.matched));
    }
    const bool anchor =
        position.at == copy::program_state::step::first_anchor || position.at == copy::program_state::step::last_anchor;
    if (anchor && random() % 4 == 0) end = entry->grammar->trie().longest_token(rules, s, "\"");
    if (position.at == copy::program_state::step::after_lt && (tokens > 200 || random() % 8 == 0)) {
      end = entry->grammar->trie().longest_token(rules, s, "/program>");
    }
    if (end) t = *end;
    EXPECT_GE(t, 0) << "no token can follow " << text;
    if (t < 0) return text;
    EXPECT_TRUE(mask[static_cast<std::size_t>(t) / 64] >> (t % 64) & 1) << text;
    EXPECT_TRUE(entry->grammar->accept_token(s, t)) << text;
    text += tokenizer.piece(t);
  }
  return rules.is_terminated(s) ? text : std::string();
}

// Set REDLINE_COPY_PROGRAMS=10000 for a long run.
TEST(grammar_matcher, random_tokens_under_masks_make_valid_programs) {
  const char* count = std::getenv("REDLINE_COPY_PROGRAMS");
  const std::size_t programs = count != nullptr ? std::strtoull(count, nullptr, 10) : test::rounds(200, 20);
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    grammar_cache cache(make_trie(tokenizer));
    std::mt19937 random(11);
    std::size_t finished = 0, copies = 0;
    for (std::size_t i = 0; i < programs && !testing::Test::HasFailure(); ++i) {
      std::vector<copy::document> files;
      for (std::size_t f = 1 + random() % 3; f > 0; --f) {
        const std::string bytes(random() % 130, '\n');
        std::vector<std::uint32_t> ends(bytes.size());
        for (std::uint32_t e = 0; e < ends.size(); ++e) ends[e] = e + 1;
        files.emplace_back(bytes, ends);
      }
      auto shape = copy::shape_of(files, random() % 2 == 0);
      shape.anchors = random() % 4 == 0;
      const auto text = write_at_random(cache, *tokenizer, shape, random);
      if (text.empty()) continue;
      ++finished;
      const auto p = copy::parse_program(text, shape);
      ASSERT_TRUE(p) << name << ": " << p.error().describe() << "\n" << text;
      ASSERT_TRUE(copy::resolve(*p, files)) << name;
      for (const auto& op : *p) copies += std::holds_alternative<copy::copy_op>(op) ? 1 : 0;
    }
    EXPECT_GT(finished, programs / 2) << name;
    EXPECT_GT(copies, programs / 4) << name;
  }
}

}  // namespace
}  // namespace redline::grammar
