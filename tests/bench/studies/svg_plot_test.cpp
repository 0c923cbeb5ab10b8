#include "bench/studies/svg_plot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace redline::studies {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(svg_plot, draws_a_mark_per_point_and_a_name_per_series) {
  const plot p{.title = "t",
               .note = "n",
               .x_label = "x",
               .y_label = "y",
               .series = {{"one", {{0, 1}, {2, 3}}}, {"two", {{1, 1}}}}};
  const std::string svg = svg_of(p);
  EXPECT_EQ(count_of("<circle", svg), 3U);
  EXPECT_EQ(count_of("<path", svg), 0U);
  EXPECT_THAT(svg, HasSubstr(">one</text>"));
  EXPECT_THAT(svg, HasSubstr(">two</text>"));
}

TEST(svg_plot, joins_points_by_lines_and_stands_bars_on_the_axis) {
  plot p{.series = {{"proposed", {{1, 10}, {2, 4}}}, {"accepted", {{1, 5}, {2, 0}}}}};
  p.drawn_as = plot::mark::lines;
  EXPECT_EQ(count_of("<path", svg_of(p)), 2U);
  p.drawn_as = plot::mark::bars;
  const std::string svg = svg_of(p);
  EXPECT_EQ(count_of("<rect", svg), 1U + 4U + 2U);   // ground, bars, legend
  EXPECT_THAT(svg, HasSubstr("y=\"60.0\" width="));  // ten of ten reaches the top
  EXPECT_THAT(svg, HasSubstr("y=\"425.0\" width="));
}

TEST(svg_plot, escapes_names_and_refers_to_nothing_outside) {
  const std::string svg = svg_of({.title = "a<b & \"c\"\x01", .series = {{"<script>", {{1, 1}}}}});
  EXPECT_THAT(svg, HasSubstr("a&lt;b &amp; &quot;c&quot;</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_EQ(count_of("http", svg), 1U);  // the name of SVG's namespace
}

TEST(svg_plot, survives_nothing_and_what_is_no_number) {
  using points_list = std::vector<std::pair<double, double>>;
  for (const auto& points : {points_list{}, points_list{{NAN, 1}}, points_list{{1, INFINITY}}, points_list{{0, 0}}}) {
    const std::string svg = svg_of({.series = {{"s", points}}});
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("\"inf")));
    EXPECT_THAT(svg, HasSubstr("</svg>"));
  }
}

}  // namespace
}  // namespace redline::studies
