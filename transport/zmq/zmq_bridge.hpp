#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "runtime/base/size_limits.hpp"
#include "transport/zmq/pool_wire.hpp"
#include "transport/zmq/zmq_endpoint.hpp"

namespace redline::transport {

/// How a process takes part in a pool.
struct bridge_options {
  std::vector<std::string> joins;  // endpoints of brokers; all are dialled
  bool insecure_plaintext = false;
  std::optional<curve_keys> own_keys;
  std::string server_public_key;  // the public key of the brokers, required with own_keys
  std::string card;               // the description of this process
  pool_rules rules;
  link_limits limits;
  microseconds missed_after{5'000'000};  // after this long without an answer a broker is reported as missing
  /// Called if another process has this process's number: a restart draws another one. Runs on the bridge's thread.
  std::function<void()> on_number_taken;
};

/// Carries frames between this process and others, through brokers. Runs on its own thread; `update_card` and
/// `tell_again` are thread-safe.
class zmq_bridge {
 public:
  /// How frames reach this process's own workers.
  struct inside {
    std::function<bool(std::uint16_t worker)> has_worker;
    /// Returns false if the worker's queue is full.
    std::function<bool(const actor::envelope&, std::string_view body)> deliver;
  };

  /// outbound: a bound socket that receives this process's frames for other processes.
  zmq_bridge(zmq::context_t& context, process_start self, bridge_options options, std::vector<actor::address> watchers,
             zmq::socket_t outbound, inside own);

  /// Runs until `running` is false, then says goodbye.
  void run(const std::atomic<bool>& running);
  /// One iteration of `run`: carries some of the waiting frames in both directions. Returns how many.
  std::size_t take_turn();
  void update_card(std::string card);
  /// Reports all present processes to the watchers again, for one that has lost its state. Thread-safe.
  void tell_again() { is_to_tell_again_ = true; }

 private:
  using clock = std::chrono::steady_clock;

  struct member {
    std::uint64_t start_id = 0;
    std::uint8_t role = 0;
    std::string card;
    std::string unfit;  // why frames are not exchanged with it although the broker knows it
  };
  struct broker_link {
    std::string endpoint;
    zmq::socket_t socket;
    std::uint64_t start_id = 0;  // process start of the broker; 0 before its hello
    clock::time_point heard;
    std::string refused;             // why the broker refuses this process, or is refused
    clock::time_point asks_at;       // when to send the next hello
    clock::time_point missed_since;  // when it last answered, or was first called
    bool is_missed = false;          // whether the log says that it is missing
    std::map<actor::process_number, member> members;
    std::uint64_t sent_bytes = 0, acknowledged_bytes = 0;
    std::uint64_t received_bytes = 0, told_bytes = 0;
  };
  /// Another process, across all links.
  struct peer {
    member is;
    bool in_limbo = false;  // no link reaches it at the moment
    clock::time_point lost_at;
  };

  void connect(broker_link& link);
  void forward_out();
  void take_in(broker_link& link);
  void take_control(broker_link& link, const actor::envelope& head, std::string_view body);
  void take_news(broker_link& link, const member_news& news);
  void be_refused(broker_link& link, const std::string& what, const std::string& why);
  /// The reason to reject a broker with this hello; nullopt if it is acceptable.
  [[nodiscard]] std::optional<std::string> why_unfit(std::string_view broker) const;
  void hear_of_twin(std::string_view body);
  bool send_control(broker_link& link, actor::message_id what, std::string_view body);
  bool send_frame(broker_link& link, const actor::envelope& head, std::string_view body);
  void say_hello(broker_link& link);
  void beat(clock::time_point now);
  void lose_link(broker_link& link, const std::string& why);
  [[nodiscard]] broker_link* find_link(actor::process_number process, std::uint64_t start_id);
  /// Compares what the links report about a process with what was reported to the watchers.
  void review(actor::process_number process, const std::string& why, bool is_certain);
  [[nodiscard]] std::string why_missed(const broker_link& link) const;
  /// Reports to the watchers whether a broker has accepted this process, or why none does.
  void tell_standing();
  void tell_watchers(const actor::process_number process, bool reachable, std::string why, const member* is);
  void deliver(const actor::frame& f);

  process_start self_;
  bridge_options options_;
  std::vector<actor::address> watchers_;
  zmq::socket_t outbound_;
  inside inside_;
  std::vector<broker_link> links_;
  std::map<actor::process_number, peer> peers_;
  std::vector<zmq::message_t> parts_;
  std::mutex card_mutex_;
  std::string card_;
  std::atomic<bool> card_changed_{false};
  std::atomic<bool> is_to_tell_again_{false};
};

/// Sets the options that all sockets to other processes share.
void set_link_options(zmq::socket_t& socket, const link_limits& limits);

}  // namespace redline::transport
