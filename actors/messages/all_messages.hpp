#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <type_traits>

#include "actors/messages/cache_messages.hpp"
#include "actors/messages/draft_messages.hpp"
#include "actors/messages/edit_messages.hpp"
#include "actors/messages/gateway_messages.hpp"
#include "actors/messages/http_messages.hpp"
#include "actors/messages/pool_messages.hpp"
#include "actors/messages/session_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "actors/messages/target_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "runtime/actor/system_messages.hpp"

namespace redline::actors {

/// Every message. A new one is added here, which checks that its number is unique and makes the tests pin its bytes.
using all_messages =
    std::tuple<actor::undeliverable, actor::actor_down, actor::restart_actor, actor::stop_worker, actor::peer_state,
               read_kept, kept_prefixes, propose, proposal, forget, verify_run, verified, prefilled, log_needed,
               refused, release_sequence, forward_batch, batch_done, target_ready, run_pending, announce_target,
               manager_tick, give_up_round, replan, report_status, scheduler_report, session_admitted, session_text,
               session_finished, cancel_session, pause_session, session_tick, session_step, http_arrived, http_closed,
               http_flow, http_respond, http_stream, http_body, http_progress, http_hold, http_fail, http_forget,
               http_drain, drain_gateway, cancel_everything, gateway_tick, answer_part_due, show_session, show_file,
               put_file, patch_file, drop_file, complete_text, edit_file, close_session, withdraw_call,
               sequence_returned, edit_session_tick, session_shown, file_shown, call_done, call_refused, answer_started,
               edit_session_alive, edit_session_over, read_header, header_part, fetch_model, lose_model, fetch_due,
               place_session, session_placed, no_place, leave_place, places_due, placer_tick, model_standing>;

/// Calls body(std::type_identity<M>{}) for every message M.
template<class Body>
constexpr void for_each_message(Body body) {
  [&]<class... Ms>(std::type_identity<std::tuple<Ms...>>) {
    (body(std::type_identity<Ms>{}), ...);
  }(std::type_identity<all_messages>{});
}

namespace detail {
constexpr bool numbers_are_distinct() {
  std::array<std::uint16_t, std::tuple_size_v<all_messages>> numbers{};
  std::size_t count = 0;
  for_each_message([&]<class M>(std::type_identity<M>) { numbers[count++] = M::id.value; });
  std::sort(numbers.begin(), numbers.end());
  return std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
}
}  // namespace detail
static_assert(detail::numbers_are_distinct());

}  // namespace redline::actors
