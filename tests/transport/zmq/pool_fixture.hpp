#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "runtime/actor/link.hpp"
#include "runtime/actor/system_messages.hpp"
#include "transport/zmq/bridge_counts.hpp"

namespace redline::transport {

using actor::envelope;
using actor::frame;
using actor::make_address;

inline constexpr auto patience = std::chrono::seconds(20);

/// A private directory under the temporary one.
class scratch {
 public:
  explicit scratch(mode_t mode) {
    std::string name = (std::filesystem::temp_directory_path() / "redline-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    ::chmod(path_.c_str(), mode);
  }
  ~scratch() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string endpoint() const { return "ipc://" + path_ + "/bus"; }

 private:
  std::string path_;
};

inline frame note(actor::address to, actor::address from, std::string body) {
  return {envelope{.to = to, .from = from, .id = {0x0f01}}, std::move(body)};
}

/// The news that a broker accepted this process, which most tests skip.
inline bool is_joining(const frame& f) {
  if (f.head.id != actor::peer_state::id) return false;
  const auto news = actor::decode<actor::peer_state>(f.body);
  return news && news->process == 0 && news->reachable;
}

/// Returns the next frame within the deadline, skipping the news that a broker accepted this process; `meanwhile` is
/// called while none comes.
inline std::optional<frame> next(actor::link& l, const std::function<void()>& meanwhile = {},
                                 std::chrono::milliseconds at_most = patience) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (std::chrono::steady_clock::now() < end) {
    if (auto f = l.receive()) {
      if (is_joining(*f)) continue;
      return f;
    }
    if (meanwhile) meanwhile();
    l.wait(microseconds{10'000});
  }
  return std::nullopt;
}

/// Returns the next news of a peer within the deadline.
inline actor::peer_state next_news(actor::link& l) {
  const auto f = next(l);
  EXPECT_TRUE(f);
  if (!f || f->head.id != actor::peer_state::id) return {};
  const auto news = actor::decode<actor::peer_state>(f->body);
  return news ? *news : actor::peer_state{};
}

inline std::uint64_t count_of(bridge_refusal why) { return read_bridge_counts()[static_cast<std::size_t>(why)]; }

/// Waits until the bridge has refused once more for that reason.
inline bool is_refused_again(bridge_refusal why, std::uint64_t before) {
  for (int i = 0; i < 500 && count_of(why) == before; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return count_of(why) > before;
}

}  // namespace redline::transport
