#include "bench/studies/fleet/fleet_report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bench/studies/common/statistics.hpp"

namespace redline::studies {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const value_spread& s) {
  return {{"count", s.count}, {"mean", s.mean}, {"p50", s.p50}, {"p95", s.p95}, {"p99", s.p99}, {"max", s.max}};
}

double sum_messages(const traffic& t) {
  return static_cast<double>(std::accumulate(t.messages.begin(), t.messages.end(), std::uint64_t{0}));
}
double sum_bytes(const traffic& t) { return std::accumulate(t.bytes.begin(), t.bytes.end(), 0.0); }

void print_spread(const char* what, const value_spread& s) {
  std::printf("%-34s %10.1f %10.1f %10.1f ms\n", what, s.p50, s.p99, s.max);
}

}  // namespace

ordered_json to_json(const fleet_options& o, const pass_curve& curve, const fleet_result& r) {
  ordered_json kinds = ordered_json::object();
  for (std::size_t i = 0; i < carried_count; ++i) {
    const auto& t = r.carried_by_broker;
    kinds[std::string(name_of(static_cast<carried>(i)))] = {
        {"messages_per_second", ratio(static_cast<double>(t.messages[i]), r.measured_seconds)},
        {"bytes_per_second", ratio(t.bytes[i], r.measured_seconds)}};
  }
  const double rows = static_cast<double>(r.rows);
  return {{"benchmark", "simulate"},
          {"curve", curve.name},
          {"options",
           {{"workers", o.workers},
            {"gateways", o.gateways},
            {"sessions", o.sessions},
            {"tenants", o.tenants},
            {"minutes", o.minutes},
            {"think_seconds", o.think_seconds},
            {"loss_per_minute", o.loss_per_minute},
            {"restart_seconds", o.restart_seconds},
            {"detect_ms", o.detect_ms},
            {"diurnal", o.diurnal},
            {"placement", o.placement},
            {"seed", o.seed},
            {"hop_us", o.hop_us},
            {"draft_us", o.draft_us},
            {"running_max", o.limits.running_max},
            {"waiting_max", o.limits.waiting_max},
            {"context", o.limits.tokens_max},
            {"kv_pages", o.limits.pages_count}}},
          {"measured_seconds", r.measured_seconds},
          {"answers", r.answers},
          {"unfinished", r.unfinished},
          {"failed", r.failed},
          {"refused", r.refused},
          {"placements", r.placements},
          {"tokens_per_second", ratio(static_cast<double>(r.tokens), r.measured_seconds)},
          {"tokens_per_round", ratio(static_cast<double>(r.tokens), static_cast<double>(r.rounds))},
          {"busy_share", r.busy_share},
          {"first_token_ms", to_json(r.first_token_ms)},
          {"time_per_token_ms", to_json(r.time_per_token_ms)},
          {"longest_pause_ms", to_json(r.longest_pause_ms)},
          {"rows", r.rows},
          {"cached_tokens", r.cached_tokens},
          {"preempted", r.preempted},
          {"losses",
           {{"workers", r.losses},
            {"moved_answers", r.moved_answers},
            {"stall_ms", to_json(r.stall_ms)},
            {"rows_of_moved_answers", r.rows_lost},
            {"rows_of_earlier_turns", r.rows_forgotten},
            {"recomputed_share", ratio(static_cast<double>(r.rows_lost + r.rows_forgotten), rows)}}},
          {"rows_known_elsewhere", r.rows_elsewhere},
          {"rows_evicted", r.rows_evicted},
          {"broker",
           {{"messages_per_second", ratio(sum_messages(r.carried_by_broker), r.measured_seconds)},
            {"bytes_per_second", ratio(sum_bytes(r.carried_by_broker), r.measured_seconds)},
            {"messages_per_second_max", r.messages_per_second_max},
            {"bytes_per_second_max", r.bytes_per_second_max},
            {"kinds", kinds}}},
          {"fairness", {{"jain_index", r.fairness}, {"first_token_ratio", r.first_token_ratio}}},
          {"head_of_line",
           {{"short_alone_ms", to_json(r.short_alone_ms)}, {"short_after_long_ms", to_json(r.short_after_long_ms)}}},
          {"herd", {{"answers_in_100_ms_mean", r.herd_mean}, {"answers_in_100_ms_max", r.herd_max}}}};
}

void print_fleet(const fleet_options& o, const pass_curve& curve, const fleet_result& r) {
  const double rows = static_cast<double>(r.rows);
  const auto& t = r.carried_by_broker;
  std::printf("%u workers, %u users, %u gateways, placement %s, %.3g %% of the workers lost each minute, seed %llu\n",
              o.workers, o.sessions, o.gateways, o.placement.c_str(), o.loss_per_minute * 100,
              static_cast<unsigned long long>(o.seed));
  std::printf("curve: %s\n", curve.name.c_str());
  std::printf(
      "%.0f s measured: %llu answers, %llu failed, %llu refusals passed on, %.0f tokens/s, workers busy %.1f %%\n\n",
      r.measured_seconds, static_cast<unsigned long long>(r.answers), static_cast<unsigned long long>(r.failed),
      static_cast<unsigned long long>(r.refused), ratio(static_cast<double>(r.tokens), r.measured_seconds),
      r.busy_share * 100);
  std::printf("%-34s %10s %10s %10s\n", "", "p50", "p99", "max");
  print_spread("first token", r.first_token_ms);
  print_spread("time per token", r.time_per_token_ms);
  print_spread("longest pause of an answer", r.longest_pause_ms);
  print_spread("short prompt, no long one there", r.short_alone_ms);
  print_spread("short prompt after a long one", r.short_after_long_ms);
  if (r.losses > 0) print_spread("from a worker's end to the next token", r.stall_ms);
  std::printf(
      "\nrows computed: %llu; again because of losses: %llu of moved answers, %llu of earlier turns (%.2f %%)\n",
      static_cast<unsigned long long>(r.rows), static_cast<unsigned long long>(r.rows_lost),
      static_cast<unsigned long long>(r.rows_forgotten),
      100 * ratio(static_cast<double>(r.rows_lost + r.rows_forgotten), rows));
  std::printf("again because another worker had them: %llu (%.2f %%), because pages ran out: %llu (%.2f %%)\n",
              static_cast<unsigned long long>(r.rows_elsewhere),
              100 * ratio(static_cast<double>(r.rows_elsewhere), rows), static_cast<unsigned long long>(r.rows_evicted),
              100 * ratio(static_cast<double>(r.rows_evicted), rows));
  std::printf("prompt tokens from caches: %llu\n", static_cast<unsigned long long>(r.cached_tokens));
  std::printf("workers lost: %llu; answers that went on elsewhere: %llu\n", static_cast<unsigned long long>(r.losses),
              static_cast<unsigned long long>(r.moved_answers));
  std::printf("all brokers: %.0f messages/s, %.2f MB/s; in the busiest second %.0f and %.2f\n",
              ratio(sum_messages(t), r.measured_seconds), ratio(sum_bytes(t), r.measured_seconds) / 1e6,
              r.messages_per_second_max, r.bytes_per_second_max / 1e6);
  const auto print_questions = [&](const char* what, carried question, carried answer) {
    const auto q = static_cast<std::size_t>(question), a = static_cast<std::size_t>(answer);
    std::printf("  of them questions %s, and answers: %.0f messages/s, %.2f MB/s\n", what,
                ratio(static_cast<double>(t.messages[q] + t.messages[a]), r.measured_seconds),
                ratio(t.bytes[q] + t.bytes[a], r.measured_seconds) / 1e6);
  };
  print_questions("how a worker stands", carried::report_status, carried::scheduler_report);
  print_questions("what it keeps", carried::read_kept, carried::kept_prefixes);
  std::printf("fairness between tenants of a kind: Jain's index %.4f, longest by shortest mean first token %.2f\n",
              r.fairness, r.first_token_ratio);
  std::printf("answers given to one worker within 100 ms: %.2f in the mean, %u at most\n", r.herd_mean, r.herd_max);
}

}  // namespace redline::studies
