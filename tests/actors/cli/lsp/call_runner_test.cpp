#include "actors/cli/lsp/call_runner.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <map>

#include "tests/transport/http_server_fixture.hpp"

namespace redline::actors::cli::lsp {
namespace {

using kind = server_reply::kind;
using transport::exchange_id;
using transport::http_front;
using transport::http_request;

/// Returns how the first `count` calls to end did end.
std::map<std::uint64_t, kind> ended(call_runner& runner, std::size_t count) {
  std::map<std::uint64_t, kind> out;
  while (out.size() < count) {
    pollfd more{runner.descriptor(), POLLIN, 0};
    ::poll(&more, 1, -1);
    for (const auto& e : runner.take_events()) {
      if (e.reply) {
        EXPECT_TRUE(out.emplace(e.ticket, e.reply->what).second) << "reported twice: " << e.ticket;
      }
    }
  }
  return out;
}

/// Answers only the calls that change a session.
void serve(http_front& front, exchange_id id, const http_request& r) {
  if (r.method == "PATCH" || r.method == "DELETE") front.respond(id, 200, {{"Content-Type", "application/json"}}, "{}");
}

TEST(call_runner, makes_quick_calls_while_slow_ones_wait) {
  transport::http_server_fixture server(serve);
  call_runner runner;
  runner.set_server(*server_address::parse("http://127.0.0.1:" + std::to_string(server.port()), ""));
  std::uint64_t ticket = 0;
  // Starts more calls than there are threads.
  for (std::size_t i = 0; i < 2 * call_runner::completion_threads; ++i) runner.start(++ticket, complete_call{"s", "p"});
  for (std::size_t i = 0; i < 2 * call_runner::edit_threads; ++i) runner.start(++ticket, edit_call{"s", "p"});
  const std::uint64_t slow = ticket;
  for (int i = 0; i < 20; ++i) runner.start(++ticket, patch_call{"s", "p", {}});
  for (const auto& [which, how] : ended(runner, 20)) {
    EXPECT_GT(which, slow);
    EXPECT_EQ(how, kind::done);
  }
  for (std::uint64_t i = 1; i <= slow; ++i) runner.give_up(i);
  for (const auto& [which, how] : ended(runner, slow)) EXPECT_EQ(how, kind::cancelled) << which;
  runner.give_up(1);  // a call that has ended
}

TEST(call_runner, ends_whatever_is_under_way) {
  transport::http_server_fixture server(serve);
  {
    call_runner runner;
    runner.set_server(*server_address::parse("http://127.0.0.1:" + std::to_string(server.port()), ""));
    for (std::uint64_t i = 1; i < 20; ++i) runner.start(i, complete_call{"s", "p"});
    ASSERT_TRUE(server.wait_for_requests(call_runner::completion_threads));
  }
  EXPECT_TRUE(server.wait_for_closed(call_runner::completion_threads));
  EXPECT_EQ(server.requests().size(), call_runner::completion_threads) << "what waited is not begun";
}

TEST(call_runner, makes_no_calls_of_nobody) {
  call_runner runner;
  runner.start(7, close_call{"s"});
  EXPECT_EQ(ended(runner, 1).at(7), kind::cancelled);
}

}  // namespace
}  // namespace redline::actors::cli::lsp
