#include "bench/studies/edits/edit_timeline.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace redline::studies {
namespace {

using part = edit_part;
using steps = std::vector<answer_replay::step>;

double share(const decoding_times& t, part of) { return t.busy[static_cast<std::size_t>(of)]; }

/// An edit of two rounds, whose first pass is the prompt's.
const std::vector<busy_time> two_rounds = {
    {part::target_model, true, 0, 900'000},           {part::session, false, 900'000, 1'000'000},
    {part::draft_model, false, 1'000'000, 1'300'000}, {part::target_model, true, 1'200'000, 1'700'000},
    {part::session, false, 1'800'000, 1'900'000},
};

TEST(edit_timeline, counts_each_time_of_decoding_once) {
  const decoding_times t = decoding_times_of(two_rounds, 2);
  EXPECT_DOUBLE_EQ(t.whole, 1.0);  // from the end of the prompt's pass to that of the session's last work
  EXPECT_EQ(t.passes, std::vector<double>{0.5});
  EXPECT_DOUBLE_EQ(share(t, part::target_model), 0.5);
  EXPECT_DOUBLE_EQ(share(t, part::draft_model), 0.2) << "the target model was busy for the rest of it";
  EXPECT_DOUBLE_EQ(share(t, part::session), 0.2);
  EXPECT_NEAR(t.waiting(), 0.1, 1e-9);
}

TEST(edit_timeline, takes_passes_before_the_first_token_for_the_prompts) {
  auto chunked = two_rounds;
  chunked.insert(chunked.begin(), {part::target_model, true, -500'000, -100'000});
  EXPECT_EQ(decoding_times_of(chunked, 2).passes, std::vector<double>{0.5});
  EXPECT_DOUBLE_EQ(decoding_times_of(chunked, 2).whole, 1.0);
}

TEST(edit_timeline, has_no_decoding_in_an_answer_of_one_round) {
  EXPECT_EQ(decoding_times_of(two_rounds, 1).whole, 0);
  EXPECT_EQ(decoding_times_of({}, 0).whole, 0);
  EXPECT_EQ(decoding_times_of(two_rounds, 3).whole, 0) << "there were fewer passes than rounds";
}

TEST(edit_timeline, sums_passes_by_width_and_cuts_drafts_where_they_were_refused) {
  // Rounds after the prompt's: 1, 3 and 4 rows in 10, 20 and 30 ms; the last needed 2 of its rows.
  const std::vector<steps> rounds{{{0, 0}, {0, 0}, {2, 2}, {3, 1}}};
  const std::vector<decoding_times> times{{.whole = 0.06, .busy = {}, .passes = {0.01, 0.02, 0.03}}};
  const auto widths = summarise_widths(rounds, times);
  ASSERT_EQ(widths.size(), 2u);
  EXPECT_EQ(widths[0].rows_max, 1u);
  EXPECT_EQ(widths[0].passes, 1u);
  EXPECT_EQ(widths[1].rows_max, 4u);
  EXPECT_EQ(widths[1].passes, 2u);
  EXPECT_EQ(widths[1].rows, 7u);
  EXPECT_EQ(widths[1].tokens, 5u);
  EXPECT_DOUBLE_EQ(widths[1].seconds, 0.05);
  EXPECT_DOUBLE_EQ(widths[1].least_seconds, 0.02 + 0.015) << "2 rows are between 1 and 3";
}

TEST(edit_timeline, leaves_out_edits_whose_rounds_took_several_passes) {
  const std::vector<steps> rounds{{{0, 0}, {0, 0}}};
  EXPECT_TRUE(summarise_widths(rounds, std::vector<decoding_times>(1)).empty());
}

TEST(edit_timeline, records_actors_by_part_in_the_order_of_their_ends) {
  const auto at = [](int us) { return instant{microseconds{us}}; };
  activity_record record;
  record.note({.actor = "target model", .message = "forward_batch", .begin = at(10), .end = at(40)});
  record.note({.actor = "session 7", .message = "", .begin = at(20), .end = at(30)});
  record.note({.actor = "gateway", .message = "note", .begin = at(41), .end = at(45)});
  const auto taken = record.take();
  EXPECT_EQ(json_of(taken).dump(), R"([["session",10,20],["target",0,30],["other",31,35]])");
  EXPECT_FALSE(taken[0].is_pass);
  EXPECT_TRUE(taken[1].is_pass);
  EXPECT_TRUE(record.take().empty());
}

}  // namespace
}  // namespace redline::studies
