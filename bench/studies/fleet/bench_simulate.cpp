#include "bench/studies/fleet/bench_simulate.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/fleet/fleet_report.hpp"

namespace redline::studies {
namespace {

nlohmann::ordered_json to_json(const plan_options& o, const pass_curve& curve, const fleet_plan& plan) {
  nlohmann::ordered_json out = {{"benchmark", "plan"},
                                {"curve", curve.name},
                                {"users", o.fleet.sessions},
                                {"think_seconds", o.fleet.think_seconds},
                                {"slo_ttft_ms", o.level.first_token_ms},
                                {"slo_tpot_ms", o.level.time_per_token_ms},
                                {"percentile", o.level.percentile},
                                {"machines", plan.workers},
                                {"machines_if_none_is_lost", plan.undisturbed},
                                {"users_simulated", static_cast<double>(o.fleet.sessions) / plan.scale},
                                {"trials", nlohmann::ordered_json::array()}};
  for (const auto& t : plan.trials) {
    out["trials"].push_back({{"workers", t.workers},
                             {"one_is_lost", t.with_loss},
                             {"holds", t.holds},
                             {"busy_share", t.result.busy_share},
                             {"first_token_ms", t.result.first_token_ms.at(o.level.percentile)},
                             {"time_per_token_ms", t.result.time_per_token_ms.at(o.level.percentile)},
                             {"answers", t.result.answers},
                             {"failed", t.result.failed}});
  }
  return out;
}

void print_plan(const plan_options& o, const pass_curve& curve, const fleet_plan& plan) {
  std::printf("%u users who think %.0f s between an answer and the next question; curve: %s\n", o.fleet.sessions,
              o.fleet.think_seconds, curve.name.c_str());
  const auto percent = o.level.percentile;
  std::printf("wanted for %u of 100 answers: the first token within %.0f ms, each further one within %.0f ms\n\n",
              percent, o.level.first_token_ms, o.level.time_per_token_ms);
  std::printf("%9s %-8s %7s %15s p%u %15s p%u %7s\n", "machines", "", "busy", "first token", percent, "time per token",
              percent, "holds");
  for (const auto& t : plan.trials) {
    std::printf("%9u %-8s %6.1f%% %16.0f ms %16.1f ms %7s\n", t.workers, t.with_loss ? "one lost" : "",
                t.result.busy_share * 100, t.result.first_token_ms.at(percent), t.result.time_per_token_ms.at(percent),
                t.holds ? "yes" : "no");
  }
  if (plan.scale > 1) {
    std::printf("\nSimulated with %u users and taken times %.4g.", planned_users_max, plan.scale);
  }
  std::printf("\n%u machines are enough while all are up; take %u, so that the promise holds when one is lost.\n",
              plan.undisturbed, plan.workers);
}

}  // namespace

int run_simulate(const simulate_options& o) {
  const auto curve = read_pass_curve(o.curve);
  if (!curve) return report(curve.error());
  const auto r = simulate_fleet(o.fleet, *curve);
  if (!r) return report(r.error());
  const auto written = write_json(o.json, to_json(o.fleet, *curve, *r));
  if (!written) return report(written.error());
  if (o.json != "-") print_fleet(o.fleet, *curve, *r);
  return 0;
}

int run_plan(const plan_options& o) {
  const auto curve = read_pass_curve(o.curve);
  if (!curve) return report(curve.error());
  const auto plan = plan_fleet(o.fleet, *curve, o.level);
  if (!plan) return report(plan.error());
  const auto written = write_json(o.json, to_json(o, *curve, *plan));
  if (!written) return report(written.error());
  if (o.json != "-") print_plan(o, *curve, *plan);
  return 0;
}

}  // namespace redline::studies
