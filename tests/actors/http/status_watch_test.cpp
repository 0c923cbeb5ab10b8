#include "actors/http/status_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/actor/worker.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::json;

class watched final : public actor::actor_of<watched> {
 public:
  using accepts = actor::protocol<answer_part_due>;
  explicit watched(actor::actor_context& context)
      : actor_of(context),
        replies(context, actor::make_address(1, 2, 8), std::make_shared<gateway_probe>()),
        watch(replies) {}
  void on(const answer_part_due& m) { replies.on(m); }
  http_replies replies;
  status_watch watch;
};

class status_watch_test : public testing::Test {
 protected:
  void SetUp() override { configure_log(log_level::off, log_format::text); }

  static caller client(std::uint64_t exchange, std::uint32_t tenant = 0) {
    return {.exchange = exchange, .request_id = "r", .tenant = {tenant}};
  }
  /// Returns the events that clients received since the last call, by exchange.
  std::map<std::uint64_t, std::vector<http_stream>> told() {
    std::map<std::uint64_t, std::vector<http_stream>> out;
    for (const auto& f : link.sent) {
      if (f.head.id != http_stream::id) continue;
      auto m = *actor::decode<http_stream>(f.body);
      out[m.exchange].push_back(std::move(m));
    }
    link.sent.clear();
    return out;
  }
  static scheduler_report report_of(std::uint64_t batches, std::uint32_t process = 1) {
    scheduler_report report{.ready = true};
    worker_status w{.process = process, .ready = true, .batches_total = batches};
    const std::uint64_t first = batches < worker_status::batches_max ? 0 : batches - worker_status::batches_max;
    for (std::uint64_t n = first; n < batches; ++n) w.batches.push_back({.number = n + 1, .us = 10 * (n + 1)});
    report.workers.push_back(w);
    return report;
  }
  static json event_of(const http_stream& m) { return json::parse(m.data.substr(6)); }

  test::virtual_environment env;
  test::hand_link link;
  actor::worker core{1, 1, link, env};
  status_watch& watch =
      core.find(core.add<watched>(2, "gateway", {8, 8},
                                  [](actor::actor_context& c) { return std::make_unique<watched>(c); }))
          ->watch;
  instant start = env.now();
};

TEST_F(status_watch_test, tells_each_pass_once) {
  watch.begin(client(1));
  told();
  watch.tell({.models = {"m"}, .conflicts = {"m is claimed twice"}, .ready = true}, report_of(3), start);
  const auto first = event_of(told()[1].at(0));
  EXPECT_EQ(first["schedulers"][0]["batches"].size(), 3U);
  EXPECT_EQ(first["server"]["models"][0], "m");
  EXPECT_EQ(first["server"]["conflicts"][0], "m is claimed twice");
  EXPECT_EQ(first["server"]["ready"], true);
  watch.tell({}, report_of(5), start);
  const auto next = event_of(told()[1].at(0))["schedulers"][0]["batches"];
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(next[0]["us"], 40);
  watch.tell({}, report_of(2), start);
  EXPECT_EQ(event_of(told()[1].at(0))["schedulers"][0]["batches"].size(), 2U) << "the scheduler restarted";
}

TEST_F(status_watch_test, has_so_many_clients_and_no_more) {
  for (std::uint64_t i = 1; i <= 2 * status_watch::watchers_max; ++i) {
    watch.begin(client(i, static_cast<std::uint32_t>(i % 4)));
  }
  EXPECT_EQ(told().size(), status_watch::watchers_max);
  watch.tell({}, report_of(1), start);
  EXPECT_EQ(told().size(), status_watch::watchers_max);
  EXPECT_TRUE(watch.client_left(1));
  EXPECT_FALSE(watch.client_left(1)) << "nor the refused ones";
  EXPECT_FALSE(watch.client_left(2 * status_watch::watchers_max));
  watch.begin(client(99));
  EXPECT_EQ(told().count(99), 1U) << "a slot is free again";
}

TEST_F(status_watch_test, leaves_places_for_other_tenants) {
  for (std::uint64_t i = 1; i <= status_watch::watchers_max; ++i) watch.begin(client(i, 7));
  EXPECT_EQ(told().size(), status_watch::watchers_of_tenant_max);
  watch.begin(client(99, 8));
  EXPECT_EQ(told().count(99), 1U);
}

TEST_F(status_watch_test, sends_nothing_to_a_client_that_does_not_read_and_leaves_it_in_the_end) {
  watch.begin(client(1));
  watch.begin(client(2));
  told();
  watch.on(http_flow{.exchange = 1, .paused = true}, start);
  watch.tell({}, report_of(1), start);
  EXPECT_EQ(told().count(1), 0U);
  watch.on(http_flow{.exchange = 1, .paused = false}, start);
  watch.tell({}, report_of(2), start);
  EXPECT_EQ(told().count(1), 1U) << "it has caught up";

  watch.on(http_flow{.exchange = 1, .paused = true}, start);
  watch.on(http_flow{.exchange = 1, .paused = true}, start + status_watch::slow_max / 2);
  watch.drop_slow(start + status_watch::slow_max - microseconds{1});
  EXPECT_TRUE(told().empty());
  watch.drop_slow(start + status_watch::slow_max);
  const auto last = told();
  ASSERT_EQ(last.size(), 1U);
  EXPECT_TRUE(last.at(1).at(0).end);
  EXPECT_FALSE(watch.client_left(1));
  EXPECT_TRUE(watch.client_left(2));
}

TEST_F(status_watch_test, shows_so_many_workers_and_no_more) {
  watch.begin(client(1));
  told();
  scheduler_report report{.ready = true};
  for (std::uint32_t i = 0; i < 3 * status_watch::workers_shown_max; ++i) {
    report.workers.push_back(report_of(worker_status::batches_max, i).workers.front());
  }
  watch.tell({}, report, start);
  const auto event = told()[1].at(0);
  EXPECT_EQ(event_of(event)["schedulers"].size(), status_watch::workers_shown_max);
  EXPECT_LT(event.data.size(), 400'000U);
}

TEST_F(status_watch_test, is_silent_when_nothing_was_told_for_long) {
  EXPECT_FALSE(watch.is_silent(start + status_watch::silence_max)) << "there are no listeners";
  caller who = client(1);
  who.arrived = start;
  watch.begin(who);
  EXPECT_FALSE(watch.is_silent(start));
  EXPECT_TRUE(watch.is_silent(start + status_watch::silence_max));
  watch.tell({}, {}, start + status_watch::silence_max);
  EXPECT_FALSE(watch.is_silent(start + status_watch::silence_max));
}

TEST_F(status_watch_test, ends_all_streams_for_a_drain) {
  watch.begin(client(1));
  told();
  watch.end_all();
  const auto last = told();
  EXPECT_TRUE(last.at(1).at(0).end);
  EXPECT_TRUE(watch.empty());
}

}  // namespace
}  // namespace redline::actors
