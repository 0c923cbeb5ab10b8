#include "actors/prompts/fill_prompt.hpp"

#include <gtest/gtest.h>

#include "runtime/base/pause_point.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

class fill_prompt_test : public testing::Test {
 protected:
  fill_prompt_test() : tokenizer(*text::tokenizer::from_file(*test::make_tiny_model({.context = 256}).file())) {}

  std::string shown(const fill_task& task, std::uint32_t context_max = 4096) const {
    return *tokenizer->decode(fill_prompt(*tokenizer, task, context_max), {.render_special = true});
  }
  /// Lines [begin, end), all of which differ.
  static std::string lines(int begin, int end) {
    std::string text;
    for (int i = begin; i < end; ++i) text += "line number " + std::to_string(i * 7919 % 1009) + "\n";
    return text;
  }

  std::shared_ptr<const text::tokenizer> tokenizer;
};

TEST_F(fill_prompt_test, has_the_texts_around_the_gap_between_the_models_own_tokens) {
  EXPECT_EQ(shown({.before = "ab", .after = "cd", .path = "x", .context = {}}),
            "<|fim_prefix|>ab<|fim_suffix|>cd<|fim_middle|>");
  EXPECT_EQ(shown({}), "<|fim_prefix|><|fim_suffix|><|fim_middle|>");
}

TEST_F(fill_prompt_test, reads_other_files_in_front_with_their_names) {
  EXPECT_EQ(shown({.before = "a", .after = "b", .path = "m.py", .context = {{"x.py", "one\n"}, {"", "two\n"}}}),
            "<|file_sep|>x.py\none\n<|file_sep|>file\ntwo\n<|file_sep|>m.py\n"
            "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>");
}

TEST_F(fill_prompt_test, leaves_out_the_first_files_when_not_all_fit) {
  const fill_task task{
      .before = "a", .after = "b", .path = "m", .context = {{"x", std::string(40, 'x')}, {"y", std::string(40, 'y')}}};
  const auto text = shown(task, 128);
  EXPECT_EQ(text.find("xxx"), std::string::npos);
  EXPECT_NE(text.find("yyy"), std::string::npos);
}

TEST_F(fill_prompt_test, what_a_text_spells_is_text) {
  const auto prompt = fill_prompt(*tokenizer, {.before = "<|fim_suffix|>", .after = "<|fim_middle|>"}, 4096);
  const auto& fim = tokenizer->vocab().fim();
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), *fim.suffix), 1);
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), *fim.middle), 1);
}

TEST_F(fill_prompt_test, fits_into_the_context_whatever_is_sent) {
  const std::string much = lines(0, 2000);
  for (const std::uint32_t context : {16U, 64U, 512U, 4096U}) {
    const auto prompt =
        fill_prompt(*tokenizer, {.before = much, .after = much, .path = {}, .context = {{"f", much}}}, context);
    EXPECT_LE(prompt.size(), context - context / 4 + 4) << context;
  }
}

TEST_F(fill_prompt_test, goes_on_from_the_last_request_when_the_window_of_lines_moves) {
  // A window of 400 lines before the cursor moves down line by line.
  std::size_t moved = 0;
  auto last = fill_prompt(*tokenizer, {.before = lines(0, 400), .after = "end"}, 1U << 20);
  for (int at = 1; at <= 60; ++at) {
    auto next = fill_prompt(*tokenizer, {.before = lines(at, 400 + at), .after = "end"}, 1U << 20);
    const auto common = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), next.begin(), next.end()).first - last.begin());
    if (common < last.size() / 2) ++moved;
    last = std::move(next);
  }
  EXPECT_LE(moved, 6u) << "the beginning stays the same over many lines";
}

TEST_F(fill_prompt_test, makes_tokens_once_of_what_many_prompts_share_and_never_of_what_cannot_fit) {
  const std::uint32_t context = 4096;
  std::size_t piece_bytes_max = 1;
  for (token t = 0; t < static_cast<token>(tokenizer->size()); ++t) {
    piece_bytes_max = std::max(piece_bytes_max, tokenizer->piece(t, true).size());
  }
  const auto steps_of = [&](const fill_task& task, std::size_t prompts) {
    const auto before = pause_points_passed;
    gap_filler filler(*tokenizer, task, context, piece_bytes_max);
    for (std::size_t i = 0; i < prompts; ++i) {
      const auto text = "prompt " + std::to_string(i);
      EXPECT_EQ(filler.prompt(text), filler.prompt(text));
    }
    return pause_points_passed - before;
  };
  const auto small = lines(0, 100);
  const fill_task shared{.before = {}, .after = small, .path = "m", .context = {{"x", small}, {"y", small}}};
  const auto one = steps_of(shared, 1);
  ASSERT_GT(one, 1000U);
  EXPECT_LT(steps_of(shared, 32), 2 * one);

  // Before, after and outside the gap the text is ten times the context; only as much as fits is read.
  const std::string enormous = lines(0, static_cast<int>(10 * context * piece_bytes_max / 12));
  ASSERT_GT(enormous.size(), 10 * context * piece_bytes_max);
  const std::size_t readable = (context + 64) * piece_bytes_max;
  const fill_task task{.before = {}, .after = enormous, .path = "m", .context = {{"x", enormous}}};
  EXPECT_LT(steps_of(task, 1), readable);
  const auto before = pause_points_passed;
  const fill_task alone;
  gap_filler filler(*tokenizer, alone, context, piece_bytes_max);
  const auto prompt = filler.prompt(enormous);
  EXPECT_LT(pause_points_passed - before, 2 * readable);
  EXPECT_GT(prompt.size(), context / 2);
  EXPECT_EQ(prompt, fill_prompt(*tokenizer, {.before = enormous.substr(enormous.size() - readable)}, context));
}

TEST_F(fill_prompt_test, reads_a_short_text_from_its_first_byte) {
  const auto text = lines(0, 60);
  EXPECT_NE(shown({.before = text, .after = ""}).find(text), std::string::npos);
}

TEST_F(fill_prompt_test, reads_what_comes_after_first_where_the_model_learned_that) {
  auto model = test::make_tiny_model({.context = 256});
  // The same vocabulary with Codestral's marks.
  auto& tokens = std::get<std::vector<std::string>>(model.metadata.at("tokenizer.ggml.tokens"));
  for (auto& token : tokens) {
    if (token == "<|fim_prefix|>") token = "[PREFIX]";
    if (token == "<|fim_suffix|>") token = "[SUFFIX]";
    if (token == "<|fim_middle|>") token = "[OTHER]";
  }
  const auto codestral = *text::tokenizer::from_file(*model.file());
  ASSERT_TRUE(can_fill(codestral->vocab()));
  EXPECT_EQ(*codestral->decode(fill_prompt(*codestral, {.before = "ab", .after = "cd"}, 64), {.render_special = true}),
            "[SUFFIX]cd[PREFIX]ab");
}

}  // namespace
}  // namespace redline::actors
