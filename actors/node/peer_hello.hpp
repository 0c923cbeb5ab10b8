#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "actors/serving/verify_scheduler.hpp"
#include "runtime/actor/codec.hpp"
#include "transport/zmq_fabric.hpp"

namespace redline::actors {

/// What a process says of itself to those that it works with, before anything else.
struct peer_hello {
  std::uint64_t model = 0;       // digest of the target model's file; see gguf::compute_file_digest
  std::uint64_t vocabulary = 0;  // digest of the tokenizer
  std::string numerics;          // what decides the bits of its answers: kernels and KV type; empty: it runs no model
  std::uint32_t context = 0;     // as asked for, or the model's
  std::uint32_t running_max = 0;
  std::uint32_t waiting_max = 0;
  std::string version;  // for the log
  bool operator==(const peer_hello&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.model, self.vocabulary, self.numerics, self.context, self.running_max, self.waiting_max,
                    self.version);
  }
};

/// Decides with whom a process works. The first target model that a front takes fixes the numerics: one that comes
/// later must give the same bits.
class peer_check {
 public:
  peer_check(std::uint16_t process, peer_hello own) : process_(process), own_(std::move(own)) {}
  /// Why the process may not take part, and what to do.
  result<void> check(std::uint16_t process, const peer_hello& theirs);

 private:
  std::uint16_t process_;
  peer_hello own_;
  std::string numerics_;
};

/// Which messages a process may send, by its role.
[[nodiscard]] bool may_send(std::uint16_t process, actor::message_id what);

/// The rules of this process's bridge.
[[nodiscard]] transport::peer_rules make_peer_rules(std::uint16_t process, const peer_hello& own);

}  // namespace redline::actors
