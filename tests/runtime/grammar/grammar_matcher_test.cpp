#include "runtime/grammar/grammar_matcher.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/copy/program.hpp"
#include "runtime/grammar/copy_grammar.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "tests/runtime/grammar/grammar_fixture.hpp"
#include "tests/support/rounds.hpp"

namespace redline::grammar {
namespace {

std::shared_ptr<const token_trie> index_of(std::shared_ptr<const text::tokenizer> words) {
  const auto index = token_trie::make(std::move(words));
  EXPECT_TRUE(index) << index.error().describe();
  return *index;
}

/// Each token tried alone, byte by byte.
token_mask slowly(const token_trie& index, const machine& m, const state& s) {
  token_mask out((index.tokenizer().size() + 63) / 64);
  for (token t = 0; t < static_cast<token>(index.tokenizer().size()); ++t) {
    state after = s;
    const bool taken = index.tokenizer().is_end_of_generation(t) ? m.may_end(s) : index.advance(m, after, t);
    if (taken) out[static_cast<std::size_t>(t) / 64] |= std::uint64_t{1} << (t % 64);
  }
  return out;
}

std::vector<std::pair<std::string, std::shared_ptr<const text::tokenizer>>> all_words() {
  auto all = test::real_words();
  all.emplace_back("tiny", test::tiny_words());
  all.emplace_back("programs", test::program_words());
  return all;
}

TEST(token_trie, masks_are_what_trying_every_token_gives) {
  const copy_grammar programs({.files = {{120, 0}, {7, 0}}});
  const auto json = *compile_schema(
      R"({"type":"object","properties":{"name":{"type":"string"},"n":{"enum":[1,12,"x"]}},"required":["name"]})");
  for (const auto& [name, words] : all_words()) {
    const auto index = index_of(words);
    const std::pair<const machine*, const char*> texts[] = {
        {&programs, "<gen>a <b </ge </gen><copy file=\"1\" lines=\"11-119\"/>"},
        {json.get(), "{ \"name\": \"a\\u00e9 \xc3\xa9\", \"n\": 12}"}};
    for (const auto& [m, text] : texts) {
      state s = m->begin();
      std::size_t place = 0;
      for (const char c : std::string_view(text)) {
        if (name == "tiny" || place++ % 9 == 0) {
          ASSERT_EQ(index->allowed(*m, s), slowly(*index, *m, s)) << name << " before '" << c << "' of " << text;
        }
        ASSERT_TRUE(m->is_possible(s));
        ASSERT_TRUE(m->advance(s, static_cast<std::uint8_t>(c))) << name << " at '" << c << "' of " << text;
      }
    }
  }
}

TEST(token_trie, masks_are_right_all_through_the_end_of_a_text) {
  const copy_grammar programs({.files = {{9, 0}}});
  for (const auto& [name, words] : all_words()) {
    const auto index = index_of(words);
    state s = programs.begin();
    for (const char c : std::string_view("<gen>")) ASSERT_TRUE(programs.advance(s, static_cast<std::uint8_t>(c)));
    for (const char c : copy::gen_end) {
      ASSERT_EQ(index->allowed(programs, s), slowly(*index, programs, s)) << name << " before '" << c << "'";
      ASSERT_TRUE(programs.advance(s, static_cast<std::uint8_t>(c)));
    }
  }
}

// Strings with and without a bound, characters half written, escapes, names, numbers: wherever noise leads.
TEST(token_trie, masks_are_right_wherever_noise_leads) {
  const std::string schemas[] = {
      R"({"type":"string"})", R"({"type":"string","maxLength":9})",
      R"({"type":"string","minLength":3,"maxLength":300})", "{}",
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"string","maxLength":40}},"b":{"type":["integer","string"]}}})"};
  for (const auto& [name, words] : all_words()) {
    const auto index = index_of(words);
    std::mt19937 random(7);
    std::vector<std::shared_ptr<const machine>> all{
        std::make_shared<copy_grammar>(copy::program_shape{.files = {{44, 0}, {3, 0}}, .anchors = true})};
    for (const auto& schema : schemas) all.push_back(*compile_schema(schema));
    for (const auto& m : all) {
      state s = m->begin();
      for (std::size_t step = 0; step < test::rounds(24, 8); ++step) {
        const auto mask = index->allowed(*m, s);
        ASSERT_EQ(mask, slowly(*index, *m, s)) << name << ", machine " << (&m - all.data()) << ", step " << step;
        // Of several tokens the one with most bytes above 0x7f, so that characters are met half written.
        token chosen = -1;
        std::ptrdiff_t most = -1;
        for (std::size_t tries = 1 + random() % 8; tries > 0; --tries) {
          const token t = test::any_of(mask, random);
          if (t < 0 || words->is_end_of_generation(t)) continue;
          const auto bytes = words->piece(t);
          const auto high =
              std::count_if(bytes.begin(), bytes.end(), [](char c) { return static_cast<std::uint8_t>(c) > 0x7f; });
          if (high > most) most = high, chosen = t;
        }
        const bool goes_on = chosen >= 0 && index->advance(*m, s, chosen);
        if (!goes_on || m->is_over(s) || m->stands(s)) s = m->begin();
      }
    }
  }
}

TEST(token_trie, spells_any_bytes) {
  for (const auto& [name, words] : all_words()) {
    const auto index = index_of(words);
    for (const std::string text : {"opy lines=\"", " two  blanks", "\xe2\x96\x81literal", "\t\n\r", "</gen>", "a"}) {
      std::string back;
      for (const token t : index->spell(text)) back += words->piece(t);
      EXPECT_EQ(back, text) << name;
    }
  }
}

TEST(compiled_grammar, forces_what_only_can_come) {
  for (const auto& [name, words] : all_words()) {
    const auto rules = std::make_shared<copy_grammar>(copy::program_shape{.files = {{1, 0}}});
    const compiled_grammar language(rules, index_of(words));
    state s = rules->begin();
    std::string text;
    const auto write = [&](std::string_view bytes) {
      for (const char c : bytes) ASSERT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c)));
    };
    const auto write_forced = [&] {
      std::string written;
      for (auto t = language.forced(s); t; t = language.forced(s)) {
        written += words->piece(*t);
        ASSERT_TRUE(language.advance(s, *t));
      }
      text += "|" + written;
    };
    write_forced();
    write("<c");
    write_forced();
    EXPECT_TRUE(rules->stands(s)) << "one line is copied in one way only";
    rules->resume(s, 0);
    write_forced();
    write("</");
    write_forced();
    EXPECT_TRUE(rules->is_over(s));
    EXPECT_EQ(text, "||opy lines=\"1-1\"/>||program>") << name;
  }
}

TEST(compiled_grammar, refuses_a_token_beside_the_forced_one) {
  const auto rules = std::make_shared<copy_grammar>(copy::program_shape{.files = {{5, 0}}});
  const auto words = test::tiny_words();
  const compiled_grammar language(rules, index_of(words));
  state s = rules->begin();
  for (const char c : std::string("</pro")) ASSERT_TRUE(rules->advance(s, static_cast<std::uint8_t>(c)));
  const auto forced = language.forced(s);
  ASSERT_TRUE(forced);
  state other = s;
  EXPECT_TRUE(language.advance(s, *forced));
  EXPECT_FALSE(language.advance(other, words->encode("a").front()));
}

TEST(compiled_grammar, leaves_the_last_token_before_a_choice_to_the_model) {
  struct place {
    std::shared_ptr<const machine> rules;
    std::string begun;
    std::string only;  // what must follow it
  };
  const auto programs = std::make_shared<copy_grammar>(copy::program_shape{.files = {{12, 0}}});
  const auto json = *compile_schema(
      R"({"type":"object","properties":{"name":{"type":"string"},"n":{"enum":[17,170,"x"]}},"required":["name","n"]})");
  const auto number = *compile_schema(R"({"enum":[17,170]})");
  const std::string letters = '"' + std::string(600, 'a') + '"';  // more than is looked ahead
  const auto fixed = *compile_schema("{\"const\":" + letters + "}");
  const place places[] = {{programs, "", "<"},
                          {programs, "<copy", " lines=\""},
                          {programs, "<g", "en>"},
                          {programs, "<copy lines=\"12-", "12\"/>"},
                          {programs, "</", "program>"},
                          {json, "", "{"},
                          {json, "{\"", "name\""},
                          {json, "{\"name\":\"a\",\"", "n\""},
                          {json, "{\"name\":\"a\",\"n\":1", "7"},
                          {number, "", "17"},
                          {fixed, "", letters}};
  for (const auto& [name, words] : all_words()) {
    const auto index = index_of(words);
    for (const auto& p : places) {
      const compiled_grammar language(p.rules, index);
      state s = p.rules->begin();
      for (const char c : p.begun) ASSERT_TRUE(p.rules->advance(s, static_cast<std::uint8_t>(c))) << p.begun;
      std::string_view left = p.only;
      for (auto t = language.forced(s); t; t = language.forced(s)) {
        ASSERT_TRUE(left.starts_with(words->piece(*t))) << name << " behind '" << p.begun << "'";
        ASSERT_TRUE(language.advance(s, *t));
        left.remove_prefix(words->piece(*t).size());
      }
      if (p.rules->stands(s) || p.rules->is_over(s)) {
        EXPECT_EQ(left, "") << name;
        continue;
      }
      EXPECT_EQ(index->spell(left).size(), 1u) << name << " behind '" << p.begun << "': '" << left << "'";
      // Whatever begins so and is of the language may come.
      const auto mask = index->allowed(*p.rules, s);
      for (token t = 0; t < static_cast<token>(words->size()); ++t) {
        if ((mask[static_cast<std::size_t>(t) / 64] >> (t % 64) & 1) == 0) continue;
        state after = s;
        EXPECT_TRUE(language.advance(after, t)) << name << " behind '" << p.begun << "': '" << words->piece(t) << "'";
      }
    }
  }
}

TEST(compiled_grammar, goes_on_forcing_behind_a_token_that_spans_a_choice) {
  const auto words = test::program_words();
  const auto rules = std::make_shared<copy_grammar>(copy::program_shape{.files = {{12, 0}}});
  const auto index = index_of(words);
  const compiled_grammar language(rules, index);
  const auto written =
      language.write("<copy lines=\"12-12\"/></program>", [&](state& s, auto&) { rules->resume(s, 0); });
  ASSERT_TRUE(written);
  std::string text;  // what the model is asked for in brackets
  state s = rules->begin();
  for (const token t : *written) {
    if (rules->stands(s)) rules->resume(s, 0);
    const std::string piece(words->piece(t));
    text += language.forced(s) ? piece : "[" + piece + "]";
    ASSERT_TRUE(language.advance(s, t));
  }
  EXPECT_EQ(text, "[<copy] lines[=\"][1][2]-12\"/>[</]program>");
}

TEST(grammar_cache, a_stranger_is_refused_and_what_was_forgotten_is_made_again) {
  grammar_cache cache(index_of(test::tiny_words()));
  auto c = copy_constraint({.files = {{3, 0}}});
  ASSERT_TRUE(cache.find(c));
  c.where = {1, 2, 3};
  EXPECT_FALSE(cache.find(c));
  c.where = {9, 0, 1, 0, 0, 4, 0, 0};
  EXPECT_FALSE(cache.find(c)) << "line 4 of 3";
  c.where.assign(1000, 0);
  EXPECT_FALSE(cache.find(c));
  EXPECT_FALSE(cache.find({.what = kind::last_}));
  EXPECT_FALSE(cache.find({.what = kind::copy, .schema = {}, .shape = {1}}));
  EXPECT_FALSE(cache.find({.what = kind::copy, .schema = {}, .shape = {2, 0}}));
  EXPECT_FALSE(cache.find(json_constraint("{")));
  for (std::uint32_t lines = 1; lines < 2 * grammar_cache::languages_max; ++lines) {
    ASSERT_TRUE(cache.find(copy_constraint({.files = {{lines, 0}}})));
  }
  EXPECT_TRUE(cache.find(copy_constraint({.files = {{3, 0}}})));
  grammar_cache blind(nullptr);
  EXPECT_FALSE(blind.find(copy_constraint({.files = {{3, 0}}})));
}

// Any cells that pass is_possible keep every promise: no walk from them leaves the grammar's tables.
TEST(grammar_cache, possible_places_do_no_harm) {
  std::mt19937 random(3);
  grammar_cache cache(index_of(test::tiny_words()));
  std::size_t possible = 0;
  for (std::size_t i = 0; i < test::rounds(60'000, 5'000); ++i) {
    auto c =
        i % 2 == 0
            ? copy_constraint({.files = {{30, 5}, {2, 9}}, .token_spans = true})
            : json_constraint(
                  R"({"type":"object","properties":{"ab":{"type":["string","null"]},"abc":{"type":"array","items":{"enum":[1,12]}}}})");
    c.where.resize(i % 2 == 0 ? 8 : 1 + 4 * (random() % 4));
    for (auto& cell : c.where) cell = random() % (random() % 3 == 0 ? 40 : 6);
    const auto found = cache.find(c);
    if (!found) continue;
    ++possible;
    grammar_matcher rows(**found, c);
    for (int step = 0; step < 4; ++step) {
      const auto mask = rows.allowed();
      const token t = mask.empty() ? 5 : test::any_of(mask, random);
      if (t < 0 || !rows.take(t)) break;
    }
  }
  EXPECT_GT(possible, 100u);
}

/// Writes a program with a model whose logits are noise; the grammar's masks are all that holds it.
std::string write_at_random(grammar_cache& cache, const text::tokenizer& words, const copy::program_shape& shape,
                            std::mt19937& random) {
  constraint c = copy_constraint(shape);
  auto* entry = *cache.find(c);
  const auto& rules = dynamic_cast<const copy_grammar&>(entry->language->rules());
  state s = rules.begin();
  std::string text;
  for (int tokens = 0; tokens < 400 && !rules.is_over(s); ++tokens) {
    if (rules.stands(s)) {
      rules.resume(s, 0);
      continue;
    }
    c.where.assign(s.cells().begin(), s.cells().end());
    grammar_matcher rows(**cache.find(c), c);
    const auto mask = rows.allowed();
    token t = test::any_of(mask, random);
    // Noise closes a text or a program once in ten thousand tokens; help it a little.
    const auto position = rules.position(s);
    std::optional<token> end;
    if (position.at == copy::program_state::step::gen_body && (position.matched > 0 || random() % 8 == 0)) {
      end = entry->language->trie().longest(rules, s, std::string_view("</gen>").substr(position.matched));
    }
    const bool anchor =
        position.at == copy::program_state::step::first_anchor || position.at == copy::program_state::step::last_anchor;
    if (anchor && random() % 4 == 0) end = entry->language->trie().longest(rules, s, "\"");
    if (position.phase() == copy::program_phase::after_lt && (tokens > 200 || random() % 8 == 0)) {
      end = entry->language->trie().longest(rules, s, "/program>");
    }
    if (end) t = *end;
    EXPECT_GE(t, 0) << "no token can follow " << text;
    if (t < 0) return text;
    EXPECT_TRUE(mask[static_cast<std::size_t>(t) / 64] >> (t % 64) & 1) << text;
    EXPECT_TRUE(entry->language->advance(s, t)) << text;
    text += words.piece(t);
  }
  return rules.is_over(s) ? text : std::string();
}

// REDLINE_COPY_PROGRAMS=10000 for a night.
TEST(grammar_matcher, noise_writes_valid_programs_only) {
  const char* wish = std::getenv("REDLINE_COPY_PROGRAMS");
  const std::size_t programs = wish != nullptr ? std::strtoull(wish, nullptr, 10) : test::rounds(200, 20);
  for (const auto& [name, words] : all_words()) {
    grammar_cache cache(index_of(words));
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
      const auto text = write_at_random(cache, *words, shape, random);
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
