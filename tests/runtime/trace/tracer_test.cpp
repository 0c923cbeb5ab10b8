#include "runtime/trace/tracer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/hand_link.hpp"

namespace redline::trace {
namespace {

using namespace std::chrono_literals;

span named(const std::string& name) { return {.name = name}; }

std::vector<std::string> names_of(const std::vector<span>& spans) {
  std::vector<std::string> out;
  for (const auto& s : spans) out.push_back(s.name);
  return out;
}

TEST(tracer, gives_spans_in_order_and_no_more_than_wanted) {
  tracer t;
  for (const char* name : {"a", "b", "c"}) t.push(named(name));
  EXPECT_THAT(names_of(t.take(2, 0ms)), testing::ElementsAre("a", "b"));
  EXPECT_THAT(names_of(t.take(2, 0ms)), testing::ElementsAre("c"));
  EXPECT_TRUE(t.take(2, 0ms).empty());
}

TEST(tracer, drops_what_finds_the_queue_full) {
  tracer t(2);
  for (const char* name : {"a", "b", "c", "d"}) t.push(named(name));
  EXPECT_EQ(t.counts().dropped, 2U);
  EXPECT_THAT(names_of(t.take(9, 0ms)), testing::ElementsAre("a", "b"));
  t.push(named("e"));
  EXPECT_THAT(names_of(t.take(9, 0ms)), testing::ElementsAre("e"));
  EXPECT_EQ(t.counts().dropped, 2U);
}

TEST(tracer, wakes_who_waits_for_enough_or_for_the_end) {
  tracer t;
  std::vector<std::string> first, last;
  std::thread reader([&] {
    first = names_of(t.take(2, 1h));
    last = names_of(t.take(2, 1h));
  });
  t.push(named("a"));
  t.push(named("b"));
  t.push(named("c"));
  t.stop();
  reader.join();
  EXPECT_THAT(first, testing::ElementsAre("a", "b"));
  EXPECT_THAT(last, testing::ElementsAre("c"));
  t.push(named("too late"));
  EXPECT_TRUE(t.take(2, 1h).empty());
  EXPECT_EQ(t.counts().dropped, 1U);
}

TEST(tracer, takes_from_several_threads) {
  tracer t(1000);
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&t] {
      for (int n = 0; n < 500; ++n) t.push({});
    });
  }
  std::size_t taken = 0;
  for (auto& one : writers) one.join();
  while (const auto count = t.take(64, 0ms).size()) taken += count;
  EXPECT_EQ(taken, 1000U);
  EXPECT_EQ(t.counts().dropped, 1000U);
}

TEST(open_span, tells_its_children_where_it_is) {
  test::virtual_environment env;
  const auto t = std::make_shared<tracer>();
  auto root = open_span::root(t, env, "root", span_kind::server);
  env.advance(microseconds{7});
  open_span child(t, env, root.context(), "child");
  child.set("key", std::int64_t{3});
  child.end();
  env.advance(microseconds{5});
  root.end();
  EXPECT_FALSE(root);
  EXPECT_FALSE(root.context());
  const auto spans = t->take(9, 0ms);
  ASSERT_EQ(spans.size(), 2U);
  const auto &inner = spans[0], &outer = spans[1];
  EXPECT_EQ(outer.parent, 0U);
  EXPECT_EQ(inner.parent, outer.where.span);
  EXPECT_EQ(inner.where.trace_high, outer.where.trace_high);
  EXPECT_EQ(inner.where.trace_low, outer.where.trace_low);
  EXPECT_NE(inner.where.span, outer.where.span);
  EXPECT_EQ(inner.begin - outer.begin, microseconds{7});
  EXPECT_EQ(outer.end - outer.begin, microseconds{12});
  EXPECT_FALSE(outer.has_failed);
  ASSERT_EQ(inner.attributes.size(), 1U);
}

TEST(tracer, samples_a_share_of_traces_by_their_ids_alone) {
  constexpr int traces_count = 40'000;
  const tracer all, half(1, 0.5), tenth(1, 0.1), none(1, 0);
  test::virtual_environment env;
  int halves = 0, tenths = 0;
  for (int i = 0; i < traces_count; ++i) {
    const span_context root{.trace_high = env.random(), .trace_low = env.random(), .span = 1};
    EXPECT_TRUE(all.samples(root));
    EXPECT_FALSE(none.samples(root));
    EXPECT_TRUE(half.samples(root) || !tenth.samples(root)) << "a smaller sample is a subset of a larger one";
    halves += half.samples(root) ? 1 : 0;
    tenths += tenth.samples(root) ? 1 : 0;
  }
  // The tolerance is five standard deviations.
  EXPECT_NEAR(halves, traces_count / 2, 500);
  EXPECT_NEAR(tenths, traces_count / 10, 300);
  // The low 56 bits decide, as W3C and OpenTelemetry define it.
  EXPECT_TRUE(half.samples({.trace_low = 0x0080'0000'0000'0000}));
  EXPECT_FALSE(half.samples({.trace_low = 0xff7f'ffff'ffff'ffff}));
}

TEST(open_span, of_a_root_that_is_not_sampled_is_empty_but_a_parent_decides_for_its_children) {
  test::virtual_environment env;
  const auto t = std::make_shared<tracer>(tracer::queue_spans_max, 0.0);
  EXPECT_FALSE(open_span::root(t, env, "root", span_kind::server));
  EXPECT_TRUE(open_span(t, env, {1, 2, 3}, "child"));
}

TEST(open_span, has_failed_if_it_never_ended) {
  test::virtual_environment env;
  const auto t = std::make_shared<tracer>();
  { const auto lost = open_span::root(t, env, "lost", span_kind::internal); }
  auto replaced = open_span::root(t, env, "replaced", span_kind::internal);
  replaced = {};
  const auto spans = t->take(9, 0ms);
  ASSERT_EQ(spans.size(), 2U);
  for (const auto& s : spans) EXPECT_TRUE(s.has_failed) << s.name;
}

TEST(open_span, keeps_so_many_events) {
  test::virtual_environment env;
  const auto t = std::make_shared<tracer>();
  auto span = open_span::root(t, env, "long", span_kind::internal);
  for (std::size_t i = 0; i < span_events_max + 3; ++i) span.add_event("round", {});
  span.end();
  const auto spans = t->take(1, 0ms);
  EXPECT_EQ(spans.front().events.size(), span_events_max);
  EXPECT_EQ(spans.front().events_dropped, 3U);
}

TEST(open_span, of_nothing_takes_all_calls) {
  test::virtual_environment env;
  const auto t = std::make_shared<tracer>();
  open_span none(nullptr, env, {1, 2, 3}, "no tracer");
  open_span orphan(t, env, {}, "no parent");
  for (auto* s : {&none, &orphan}) {
    EXPECT_FALSE(*s);
    s->set("key", true);
    s->add_event("event", {});
    s->fail("why");
    s->end();
  }
  EXPECT_TRUE(t->take(1, 0ms).empty());
}

}  // namespace
}  // namespace redline::trace
