#include "actors/cli/processes/parent_pipe.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace redline::actors::cli {
namespace {

/// A test with a pipe whose write end the server gets.
class parent_pipe_test : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(ends_.data()), 0); }
  void TearDown() override { ::close(ends_[0]); }
  /// Reads everything until the pipe is closed.
  std::string read_all() {
    std::string all;
    std::array<char, 64> part{};
    for (ssize_t n = 0; (n = ::read(ends_[0], part.data(), part.size())) > 0;)
      all.append(part.data(), static_cast<std::size_t>(n));
    return all;
  }
  std::array<int, 2> ends_{};
};

TEST_F(parent_pipe_test, says_ready_once_both_have_said_so) {
  parent_pipe server(ends_[1]);
  server.tell_port(8080);
  server.note_ready();
  server.note_started();
  server.note_ready();
  EXPECT_EQ(read_all(), "8080\nready\n");
}

TEST_F(parent_pipe_test, says_why_there_is_no_server) {
  parent_pipe server(ends_[1]);
  EXPECT_TRUE(server.tell_failure({errc::file_malformed, "m.gguf: cut"}));
  EXPECT_EQ(read_all(), "failed 2 m.gguf: cut\n");
  EXPECT_FALSE(server.tell_failure({errc::internal, "more"})) << "there is no listener any more";
}

TEST_F(parent_pipe_test, is_closed_where_nothing_is_said) {
  { const parent_pipe server(ends_[1]); }
  EXPECT_EQ(read_all(), "");
}

TEST(no_parent, is_told_nothing) {
  parent_pipe server(-1);
  server.tell_port(1);
  server.note_started();
  server.note_ready();
  EXPECT_FALSE(server.tell_failure({errc::internal, "x"}));
}

}  // namespace
}  // namespace redline::actors::cli
