#include "bench/studies/fleet/message_sizes.hpp"

#include "actors/messages/cache_messages.hpp"
#include "actors/messages/draft_messages.hpp"
#include "actors/messages/pool_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "bench/studies/common/names.hpp"
#include "runtime/actor/codec.hpp"
#include "runtime/actor/frame.hpp"
#include "transport/zmq/pool_wire.hpp"

namespace redline::studies {
namespace {

// Numbers of usual size, because msgpack stores integers in as few bytes as they need.
constexpr std::uint64_t some_id = 0x1234'5678'9abc'def0;
constexpr token some_token = 40'000;
constexpr std::uint32_t some_count = 2'000;
constexpr std::uint32_t many_tokens = 1'000;

actor::envelope some_envelope() {
  return {.to = actor::make_address(40'000, 1, 5),
          .from = actor::make_address(50'000, 1, 70'000),
          .id = {0x0401},
          .subject = some_id,
          .from_start_id = some_id,
          .to_start_id = some_id};
}

template<class M>
double size_on_link(const M& m) {
  const std::size_t identity = transport::to_identity({40'000, some_id}).size();
  return static_cast<double>(identity + actor::encode(some_envelope()).size() + actor::encode(m).size());
}

std::vector<token> tokens(std::uint32_t count) { return std::vector<token>(count, some_token); }

propose some_propose(std::uint32_t count) {
  return {.session = {some_id},
          .tenant = {some_id},
          .round = {100},
          .log = {some_count, tokens(count)},
          .prompt_count = some_count,
          .tokens_max = 80,
          .round_us = 20'000,
          .row_ns = 2'000};
}
proposal some_proposal(std::uint32_t count) {
  return {.session = {some_id}, .round = {100}, .tokens = tokens(count), .runs = {{}, {}}};
}
verify_run some_verify_run(std::uint32_t count) {
  return {.round = {.sequence = {some_id},
                    .number = {100},
                    .from = some_count,
                    .draft = tokens(count),
                    .segments = {{}, {}}},
          .prompt_count = some_count};
}
verified some_verified(std::uint32_t count) {
  return {.sequence = {some_id},
          .round = {100},
          .tokens = tokens(count),
          .verified_count = count,
          .passes = 1,
          .rows = count,
          .cached_count = some_count,
          .exact_count = some_count,
          .step = {20'000, 2'000, 8}};
}
scheduler_report some_report() {
  return {.ready = true,
          .running_count = 20,
          .waiting_count = 20,
          .pages_count = some_count,
          .pages_held = some_count,
          .batches_total = 1'000'000,
          .rows_total = 1'000'000'000,
          .forward_us_total = 100'000'000'000,
          .cached_total = 1'000'000'000,
          .cost_error_ratio = 0.1,
          .tokens_max = some_count,
          .pending_rows = some_count,
          .prompt_row_ns = 1'000'000};
}
transport::member_news some_news() {
  const process_card card{.version = "0.1.0",
                          .host = "worker-0123.example",
                          .name = "redline-edit",
                          .has_target = true,
                          .model = some_id,
                          .header = some_id,
                          .vocabulary = some_id,
                          .numerics = "row-chains f16",
                          .context = some_count,
                          .running_max = 64,
                          .waiting_max = 256,
                          .pages_count = some_count,
                          .threads = 4};
  return {40'000, some_id, true, actor::encode(card), ""};
}

}  // namespace

std::string_view name_of(carried what) {
  static constexpr std::array<std::string_view, carried_count> names = {
      "propose",          "proposal",  "verify_run",    "verified", "release_sequence", "refused", "report_status",
      "scheduler_report", "read_kept", "kept_prefixes", "beat",     "member_news"};
  return names.at(static_cast<std::size_t>(what));
}

message_sizes::message_sizes() {
  const auto set = [&](carried what, double none, double many) {
    sizes_[static_cast<std::size_t>(what)] = {none, (many - none) / many_tokens};
  };
  const auto set_by_tokens = [&](carried what, auto make) {
    set(what, size_on_link(make(0)), size_on_link(make(many_tokens)));
  };
  const auto set_fixed = [&](carried what, double bytes) { set(what, bytes, bytes); };
  set_by_tokens(carried::propose, some_propose);
  set_by_tokens(carried::proposal, some_proposal);
  set_by_tokens(carried::verify_run, some_verify_run);
  set_by_tokens(carried::verified, some_verified);
  set_fixed(carried::release, size_on_link(release_sequence{{some_id}}));
  set_fixed(carried::refused,
            size_on_link(refused{{some_id}, {errc::queue_full, "64 requests run and 256 wait"}, 500}));
  set_fixed(carried::report_status, size_on_link(report_status{}));
  set_fixed(carried::scheduler_report, size_on_link(some_report()));
  set_fixed(carried::read_kept, size_on_link(read_kept{some_id}));
  set_by_tokens(carried::kept_prefixes, [](std::uint32_t count) {
    return kept_prefixes{.revision = some_id, .added = std::vector<std::uint64_t>(count, some_id)};
  });
  set_fixed(carried::beat, size_on_link(transport::link_beat{some_id}));
  set_fixed(carried::member_news, size_on_link(some_news()));
}

}  // namespace redline::studies
