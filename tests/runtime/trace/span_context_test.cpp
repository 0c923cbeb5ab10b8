#include "runtime/trace/span_context.hpp"

#include <gtest/gtest.h>

#include "runtime/actor/codec.hpp"

namespace redline::trace {
namespace {

const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(traceparent, is_read_and_written) {
  const auto read = parse_traceparent(good);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->is_sampled);
  EXPECT_EQ(read->parent, (span_context{0x0af7651916cd43dd, 0x8448eb211c80319c, 0xb7ad6b7169203331}));
  EXPECT_EQ(read->parent.trace_id(), good.substr(3, 32));
  EXPECT_EQ(read->parent.span_id(), good.substr(36, 16));
}

TEST(traceparent, flags_other_than_sampled_are_not_looked_at) {
  const auto with = [](const std::string& flags) { return parse_traceparent(good.substr(0, 53) + flags); };
  EXPECT_FALSE(with("00")->is_sampled);
  EXPECT_FALSE(with("fe")->is_sampled);
  EXPECT_TRUE(with("ff")->is_sampled);
  EXPECT_FALSE(with("02")->is_sampled);
}

TEST(traceparent, of_a_later_version_what_is_known_counts) {
  const std::string rest = good.substr(2);
  EXPECT_TRUE(parse_traceparent("01" + rest));
  EXPECT_TRUE(parse_traceparent("cc" + rest + "-what-the-future-brings"));
  EXPECT_FALSE(parse_traceparent("cc" + rest + "."));
  EXPECT_FALSE(parse_traceparent("ff" + rest));
}

TEST(traceparent, anything_else_is_none) {
  EXPECT_FALSE(parse_traceparent(""));
  EXPECT_FALSE(parse_traceparent(good + "-"));
  EXPECT_FALSE(parse_traceparent(good + " "));
  EXPECT_FALSE(parse_traceparent(" " + good));
  EXPECT_FALSE(parse_traceparent("00-" + std::string(32, '0') + good.substr(35)));
  EXPECT_FALSE(parse_traceparent(good.substr(0, 36) + std::string(16, '0') + "-01"));
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(parse_traceparent(good.substr(0, length)));
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char wrong : {'g', 'A', 'F', '_', ' ', '\0', '\x80'}) {
      std::string text = good;
      text[at] = wrong;
      EXPECT_FALSE(parse_traceparent(text)) << text;
    }
  }
}

TEST(span_context, half_a_trace_id_may_be_zero) {
  const auto low = parse_traceparent("00-00000000000000000000000000000001-b7ad6b7169203331-01");
  ASSERT_TRUE(low);
  EXPECT_TRUE(low->parent);
  EXPECT_FALSE(span_context{});
}

TEST(span_context, travels) {
  const span_context sent{1, 2, ~std::uint64_t{0}};
  EXPECT_EQ(*actor::decode<span_context>(actor::encode(sent)), sent);
}

}  // namespace
}  // namespace redline::trace
