#pragma once

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace zmq {
class context_t;
}

namespace redline::transport {

/// Decides which CURVE client keys may connect (ZAP, RFC 27). libzmq admits every key if no handler answers ZAP, so a
/// gate must exist before a CURVE server socket is bound. The constructor returns once the gate answers.
class curve_gate {
 public:
  static constexpr const char* domain = "redline";

  curve_gate(zmq::context_t& context, std::vector<std::string> allowed_public_keys);
  ~curve_gate();
  curve_gate(const curve_gate&) = delete;
  curve_gate& operator=(const curve_gate&) = delete;

 private:
  void answer(zmq::context_t& context);

  std::set<std::string> allowed_;
  std::atomic<bool> running_{true};
  std::atomic<bool> bound_{false};
  std::thread thread_;
};

}  // namespace redline::transport
