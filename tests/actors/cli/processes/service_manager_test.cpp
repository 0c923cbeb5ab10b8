#include "actors/cli/processes/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/support/temporary_folder.hpp"

namespace redline::actors::cli {
namespace {

/// Listens as systemd does.
class a_service_manager : public ::testing::Test {
 protected:
  void SetUp() override {
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ::unsetenv("WATCHDOG_PID");
    ::unsetenv("WATCHDOG_USEC");
  }
  void TearDown() override {
    ::close(socket_);
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    ::unsetenv("WATCHDOG_PID");
  }
  void listen_at(const std::string& name) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name.data(), name.size());
    if (name[0] == '@') at.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&at), size), 0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  std::string heard() {
    std::array<char, 1000> bytes{};
    const auto n = ::recv(socket_, bytes.data(), bytes.size(), 0);
    return n < 0 ? "" : std::string(bytes.data(), static_cast<std::size_t>(n));
  }
  test::temporary_folder folder_;
  int socket_ = -1;
};

TEST_F(a_service_manager, is_told_of_loading_readiness_and_end) {
  listen_at(folder_ / "notify");
  service_manager manager;
  manager.note_progress();
  manager.note_progress();
  EXPECT_EQ(heard(), "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=loading");
  EXPECT_EQ(heard(), "") << "seconds apart";
  manager.note_ready();
  EXPECT_EQ(heard(), "READY=1\nSTATUS=serving");
  manager.note_alive();
  EXPECT_EQ(heard(), "") << "no watchdog was requested";
  manager.note_stopping();
  EXPECT_EQ(heard(), "STOPPING=1\nSTATUS=ending");
}

TEST_F(a_service_manager, hears_signs_of_life_often_enough_for_its_watchdog) {
  listen_at("@redline-test-" + std::to_string(::getpid()));
  ::setenv("WATCHDOG_USEC", "40000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  std::chrono::steady_clock::time_point time{};
  service_manager manager([&] { return time; });
  manager.note_alive();
  manager.note_alive();
  EXPECT_EQ(heard(), "WATCHDOG=1");
  EXPECT_EQ(heard(), "");
  time += std::chrono::milliseconds(9);
  manager.note_alive();
  EXPECT_EQ(heard(), "");
  time += std::chrono::milliseconds(1);
  manager.note_alive();
  EXPECT_EQ(heard(), "WATCHDOG=1");
}

TEST_F(a_service_manager, hears_nothing_from_a_process_that_is_not_its_own) {
  listen_at(folder_ / "notify");
  ::setenv("WATCHDOG_USEC", "40000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  service_manager manager;
  manager.note_alive();
  EXPECT_EQ(heard(), "");
}

TEST_F(a_service_manager, is_left_alone_where_its_address_is_none) {
  const std::string right = folder_ / "notify";
  listen_at(right);
  for (const std::string& address : {std::string(), std::string("/"), std::string("relative"), std::string("vsock:1:2"),
                                     right.substr(1), "/" + std::string(200, 'x'), right}) {
    ::setenv("NOTIFY_SOCKET", address.c_str(), 1);
    service_manager().note_ready();
    EXPECT_EQ(heard(), address == right ? "READY=1\nSTATUS=serving" : "") << address;
  }
}

}  // namespace
}  // namespace redline::actors::cli
