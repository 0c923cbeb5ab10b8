#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "actors/cli/lsp/language_server.hpp"
#include "actors/cli/lsp/server_calls.hpp"

namespace redline::actors::cli::lsp {

/// Makes calls on its own threads. Changes, completions and edits have separate threads, so that slow calls do not
/// delay quick ones. Outcomes are queued until they are taken, and a file descriptor signals that there are some. The
/// language server's limit of calls in progress bounds the queue.
class call_runner final : public call_desk {
 public:
  static constexpr std::size_t sync_threads = 4;
  static constexpr std::size_t completion_threads = 4;
  static constexpr std::size_t edit_threads = language_server::edits_max;

  call_runner();
  ~call_runner() override;
  call_runner(const call_runner&) = delete;
  call_runner& operator=(const call_runner&) = delete;

  /// The server for calls that begin from now on.
  void set_server(server_address at);
  /// Cancels calls until there is another server, because another process may now have the port.
  void forget_server();

  void start(std::uint64_t ticket, server_call what) override;
  void give_up(std::uint64_t ticket) override;

  struct event {
    std::uint64_t ticket = 0;
    std::optional<server_reply> reply;  // absent while the answer continues
    std::size_t bytes = 0;              // answer bytes so far
  };
  std::vector<event> take_events();
  /// Readable while there are events, or after `wake`. The owner reads it.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Safe from any thread and in a signal handler.
  void wake() const;

 private:
  struct job {
    std::uint64_t ticket = 0;
    server_call what;
    std::atomic<bool> given_up{false};
  };
  struct lane {
    std::deque<std::shared_ptr<job>> waiting;
    std::condition_variable more;
  };
  void run(lane& from);
  void tell(event e);

  std::mutex mutex_;
  lane syncs_, completions_, edits_;
  std::map<std::uint64_t, std::shared_ptr<job>> jobs_;
  std::vector<event> events_;
  std::optional<server_calls> calls_;
  bool ends_ = false;
  int descriptor_ = -1;
  std::vector<std::thread> threads_;
};

}  // namespace redline::actors::cli::lsp
