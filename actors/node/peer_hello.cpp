#include "actors/node/peer_hello.hpp"

#include <algorithm>

#include "actors/messages/draft_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "actors/node/engine.hpp"

namespace redline::actors {
namespace {

result<void> refuse(const std::string& what) { return failure{errc::invalid_argument, what}; }

result<void> compare(const std::string& flag, std::uint32_t ours, std::uint32_t theirs) {
  if (ours == theirs) return {};
  return refuse("its " + flag + " is " + std::to_string(theirs) + " and ours " + std::to_string(ours) +
                "; start both with the same " + flag);
}

template<class... Ms>
bool is_one_of(actor::message_id what) {
  return ((what == Ms::id) || ...);
}

}  // namespace

result<void> peer_check::check(std::uint16_t process, const peer_hello& theirs) {
  const bool is_front = process_ == topology::front_process;
  if (is_front == (process == topology::front_process) ||
      (process != topology::front_process && process != topology::target_process &&
       process != topology::draft_process)) {
    return refuse("process " + std::to_string(process_) + " does not work with a process " + std::to_string(process));
  }
  if (theirs.vocabulary != own_.vocabulary) {
    return refuse("its model has another vocabulary; give both the same model file");
  }
  const std::uint16_t worker = is_front ? process : process_;
  if (worker != topology::target_process) return {};
  if (theirs.model != own_.model) return refuse("it has another model file; give both the same --model");
  REDLINE_TRY(compare("--context", own_.context, theirs.context));
  REDLINE_TRY(compare("--running-max", own_.running_max, theirs.running_max));
  REDLINE_TRY(compare("--waiting-max", own_.waiting_max, theirs.waiting_max));
  if (!is_front) return {};
  if (numerics_.empty()) numerics_ = theirs.numerics;
  if (numerics_ != theirs.numerics) {
    return refuse("it computes with " + theirs.numerics + ", the target worker before it with " + numerics_ +
                  ", and answers would change; start it on such a machine with the same --kv, or restart the server");
  }
  return {};
}

bool may_send(std::uint16_t process, actor::message_id what) {
  switch (process) {
    case topology::front_process:
      return is_one_of<verify_run, prefill_run, give_up_round, release_sequence, report_status, propose, forget>(what);
    case topology::target_process:
      return is_one_of<verified, prefilled, log_needed, refused, run_pending, scheduler_report>(what);
    case topology::draft_process:
      return is_one_of<proposal>(what);
    default:
      return false;
  }
}

transport::peer_rules make_peer_rules(std::uint16_t process, const peer_hello& own) {
  const auto checker = std::make_shared<peer_check>(process, own);
  return {.hello = actor::encode(own),
          .check = [checker](std::uint16_t from, std::string_view hello) -> result<void> {
            const auto theirs = actor::decode<peer_hello>(hello);
            if (!theirs) return refuse("it does not say what it runs; start both with the same version of redline");
            return checker->check(from, *theirs);
          },
          .may_send = may_send};
}

}  // namespace redline::actors
