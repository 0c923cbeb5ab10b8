#include "actors/node/pool_rules.hpp"

#include "actors/messages/cache_messages.hpp"
#include "actors/messages/draft_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors {
namespace {

template<class... Ms>
bool is_one_of(actor::message_id what) {
  return ((what == Ms::id) || ...);
}

result<std::uint8_t> read_role(std::string_view card) {
  const auto said = actor::decode<process_card>(card);
  if (!said) {
    return failure{errc::invalid_argument,
                   "its card cannot be read; run the same version of redline in all processes of a pool"};
  }
  if (said->protocol != pool_protocol) {
    return failure{errc::invalid_argument, "expected protocol " + std::to_string(pool_protocol) + " (redline " +
                                               build_version() + "), found " + std::to_string(said->protocol) +
                                               " (redline " + shown_label(said->version) +
                                               "); run the same version of redline in all processes of a pool"};
  }
  return static_cast<std::uint8_t>(said->role);
}

}  // namespace

bool may_send(process_role role, actor::message_id what) {
  switch (role) {
    case process_role::gateway:
      return is_one_of<verify_run, give_up_round, release_sequence, report_status, read_kept, propose,
                       forget, read_header>(what);
    case process_role::worker:
      return is_one_of<verified, prefilled, log_needed, refused, run_pending, scheduler_report, kept_prefixes, proposal,
                       header_part>(what);
    case process_role::last_:
      break;
  }
  return false;
}

transport::pool_rules make_pool_rules() {
  return {.protocol = pool_protocol,
          .read_role = read_role,
          .may_meet =
              [](std::uint8_t a, std::uint8_t b) {
                const auto gateway = static_cast<std::uint8_t>(process_role::gateway);
                const auto worker = static_cast<std::uint8_t>(process_role::worker);
                return (a == gateway && b == worker) || (a == worker && b == gateway);
              },
          .may_send = [](std::uint8_t role,
                         actor::message_id what) { return may_send(static_cast<process_role>(role), what); }};
}

std::optional<std::string> why_unfit(const own_model& own, const process_card& card) {
  if (card.vocabulary != own.vocabulary) return "its model has another vocabulary; use the same model file for both";
  if (!card.has_target) return std::nullopt;
  if (card.model != own.model) return "it has another model file; use the same --model for both";
  return std::nullopt;
}

}  // namespace redline::actors
