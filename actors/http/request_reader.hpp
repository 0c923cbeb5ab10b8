#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "actors/http/gateway_services.hpp"
#include "actors/http/http_replies.hpp"
#include "actors/http/routing/content_coding.hpp"
#include "runtime/actor/offload.hpp"

namespace redline::actors {

/// Reads requests, and writes long answers, off the gateway's thread, because the client decides how long parsing,
/// templates, tokenizing and compiling take. A part of the gateway.
class request_reader {
 public:
  request_reader(actor::actor_context& context, std::shared_ptr<const gateway_services> services, http_replies& replies)
      : work_(context, services->pool), services_(std::move(services)), replies_(replies) {}

  /// Takes the request's body, runs `job(body)` on another thread, and then `then(result)` here unless the client has
  /// left meanwhile. job: returns an api::checked, whose error refuses the request; must not refer to the gateway's
  /// state.
  template<class Job, class Then>
  void read(const route_context& r, Job job, Then then) {
    using value = std::invoke_result_t<const Job&, const std::string&>;
    const caller& who = r.who;
    const auto coding = content_coding::read(r.request.headers, r.request.body);
    if (!coding) return replies_.refuse(who, coding.error());
    byte_budget::claim held(services_->request_bytes, who.tenant);
    if (const auto why = services_->hold(held, r.request.body.size() + reading_factor * coding->bytes)) {
      return replies_.refuse(who, *why);
    }
    run(
        who, coding->bytes,
        [job = std::move(job), coding = *coding, packed = std::move(r.request.body)]() mutable -> value {
          const auto body = coding.unpack(std::move(packed));
          if (!body) return body.error();
          return job(*body);
        },
        std::move(then), std::move(held));
  }
  /// The same for other work of a request, such as writing a long answer. bytes: how much data the work handles. held:
  /// released before `then` runs.
  template<class Job, class Then>
  void run(const caller& who, std::size_t bytes, Job job, Then then, byte_budget::claim held = {}) {
    using value = std::invoke_result_t<Job&>;
    const auto ticket = work_.run(who.tenant, bytes, std::move(job),
                                  [this, who, then = std::move(then)](result<value> outcome) mutable {
                                    reading_.erase(who.exchange);
                                    if (!outcome)
                                      return replies_.refuse(who, api::error_of(outcome.error(), who.request_id));
                                    if (!*outcome) return replies_.refuse(who, outcome->error());
                                    then(std::move(**outcome));
                                  });
    if (!ticket) return replies_.refuse(who, api::error_of(ticket.error(), who.request_id));
    reading_.emplace(who.exchange, reading{who, *ticket, std::move(held)});
  }
  void on(const actor::job_done& m) { work_.on(m); }

  /// False if this request is not being read.
  bool client_left(std::uint64_t exchange) {
    const auto at = reading_.find(exchange);
    if (at == reading_.end()) return false;
    work_.drop(at->second.ticket);
    reading_.erase(at);
    return true;
  }
  /// Refuses all requests that are being read.
  void fail_all(const failure& why) {
    for (const auto& [exchange, one] : std::exchange(reading_, {})) {
      work_.drop(one.ticket);
      replies_.refuse(one.who, api::error_of(why, one.who.request_id));
    }
  }
  [[nodiscard]] bool idle() const { return reading_.empty(); }

 private:
  // A body needs this multiple of its size while it is read: its text, its values, and what is made of them.
  static constexpr std::uint64_t reading_factor = 4;

  actor::offload work_;
  std::shared_ptr<const gateway_services> services_;
  http_replies& replies_;
  struct reading {
    caller who;
    std::uint64_t ticket = 0;
    byte_budget::claim held{};
  };
  std::unordered_map<std::uint64_t, reading> reading_;  // keyed by exchange
};

}  // namespace redline::actors
