// The worked example of a round in docs/speculation.md.

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "runtime/draft/book.hpp"
#include "tests/support/test_data.hpp"

namespace redline::draft {
namespace {

constexpr round_costs costs{.round_us = 2200, .row_us = 100, .model_pass_us = 150, .model_row_us = 8};

/// Proposes the same draft in every round.
class told_source final : public draft_source {
 public:
  explicit told_source(graded_draft d) : draft_(std::move(d)) {}
  void append(std::span<const token>, bool) override {}
  void drop(std::uint32_t, std::uint32_t) override {}
  bool catch_up(std::uint32_t) override { return false; }
  [[nodiscard]] graded_draft look(std::span<const token> pending, std::uint32_t) const override {
    return pending.empty() ? draft_ : graded_draft{};
  }

 private:
  graded_draft draft_;
};

graded_draft eight(source from, std::uint32_t matched, token first) {
  graded_draft out;
  for (token t = first; t < first + 8; ++t) out.add(from, grade_of_match(matched), {&t, 1});
  return out;
}

std::string row_of(const char* name, const round_value& v) {
  char line[128];
  std::snprintf(line, sizeof line, "| %s | %.0f | %.3f | %.0f | %.3f |", name, v.rows, v.tokens, v.us(costs),
                1000 * v.rate(costs));
  return line;
}

TEST(worked_round, has_the_figures_of_the_document) {
  std::ifstream file(test::source_path("docs/speculation.md"));
  std::stringstream text;
  text << file.rdbuf();
  const acceptance_record first;
  const auto lookup = eight(source::lookup, 6, 100);
  const auto predicted = eight(source::prediction, 2, 200);
  for (const auto& row :
       {row_of("no draft", {}), row_of("lookup", best_round(first.parts(lookup.runs, nullptr), costs)),
        row_of("prediction", best_round(first.parts(predicted.runs, nullptr), costs))}) {
    EXPECT_NE(text.str().find(row), std::string::npos) << row;
  }
}

TEST(worked_round, asks_the_model_when_forgone_savings_have_paid_for_its_reading) {
  book b({.how = method::automatic}, std::make_shared<tenant_record>());
  b.add(std::make_unique<told_source>(eight(source::prediction, 2, 200)));
  b.add(std::make_unique<told_source>(eight(source::lookup, 6, 100)));
  const auto nothing_cut = [](graded_draft&) {};
  for (int round = 1; round <= 3; ++round) {
    const auto choice = b.choose(costs, 324, {.is_there = true, .unread = 1000}, nothing_cut);
    EXPECT_EQ(choice.draft.tokens.front(), 100) << "lookup saves more";
    EXPECT_EQ(choice.ask_model > 0, round == 3) << round;
    b.judge(std::vector<token>{300}, 0);
  }
}

}  // namespace
}  // namespace redline::draft
