#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "actors/http/http_replies.hpp"
#include "runtime/actor/offload.hpp"

namespace redline::actors {

/// Reads requests away from the gateway's thread: parsing, templates, tokenizing and compiling take time that the
/// client decides. A part of the gateway.
class request_reader {
 public:
  request_reader(actor::actor_context& context, std::shared_ptr<actor::thread_pool> pool, http_replies& replies)
      : work_(context, std::move(pool)), replies_(replies) {}

  /// Runs `job()` on another thread, and then `then(what it gave)` here, unless the client has left meanwhile. job:
  /// gives an api::checked, whose error refuses the request; may hold nothing of the gateway's. bytes: of its input.
  template<class Job, class Then>
  void read(const caller& who, std::size_t bytes, Job job, Then then) {
    using value = std::invoke_result_t<Job&>;
    const auto ticket = work_.run(who.tenant, bytes, std::move(job),
                                  [this, who, then = std::move(then)](result<value> outcome) mutable {
                                    reading_.erase(who.exchange);
                                    if (!outcome) return replies_.refuse(who, api::error_of(outcome.error()));
                                    if (!*outcome) return replies_.refuse(who, outcome->error());
                                    then(std::move(**outcome));
                                  });
    if (!ticket) return replies_.refuse(who, api::error_of(ticket.error()));
    reading_[who.exchange] = *ticket;
  }
  void on(const actor::job_done& m) { work_.on(m); }

  /// False when this request is not being read.
  bool client_left(std::uint64_t exchange) {
    const auto at = reading_.find(exchange);
    if (at == reading_.end()) return false;
    work_.drop(at->second);
    reading_.erase(at);
    return true;
  }
  [[nodiscard]] bool idle() const { return reading_.empty(); }
  [[nodiscard]] std::size_t count() const { return reading_.size(); }

 private:
  actor::offload work_;
  http_replies& replies_;
  std::unordered_map<std::uint64_t, std::uint64_t> reading_;  // tickets by exchange
};

}  // namespace redline::actors
