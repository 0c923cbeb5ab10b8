#include "actors/http/status_watch.hpp"

#include <algorithm>

#include "actors/http/fields/json.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors {
namespace {

api::json worker_object(const worker_status& w, std::uint64_t told) {
  api::json batches = api::json::array();
  for (const batch_record& b : w.batches) {
    if (b.number <= told) continue;
    batches.push_back({{"us", b.us},
                       {"predicted_us", b.predicted_us},
                       {"sequences", b.sequences},
                       {"prompt_rows", b.prompt_rows},
                       {"decode_rows", b.decode_rows},
                       {"draft_rows", b.draft_rows}});
  }
  api::json cost = api::json::array();
  for (const predicted_cost& c : w.cost) cost.push_back({{"rows", c.rows}, {"us", c.us}});
  return {{"worker", std::to_string(w.process)},
          {"name", w.label.empty() ? std::to_string(w.process) : w.label},
          {"ready", w.ready},
          {"running", w.running_count},
          {"waiting", w.waiting_count},
          {"pages", w.pages_count},
          {"pages_held", w.pages_held},
          {"batches_total", w.batches_total},
          {"rows_total", w.rows_total},
          {"busy_us_total", w.forward_us_total},
          {"preempted_total", w.preempted_total},
          {"cost_error_ratio", w.cost_error_ratio},
          {"batch_fill", w.batch_fill},
          {"batches", std::move(batches)},
          {"cost", std::move(cost)}};
}

}  // namespace

void status_watch::begin(const caller& who) {
  const auto of_tenant =
      std::ranges::count_if(watchers_, [&](const auto& w) { return w.second.who.tenant == who.tenant; });
  if (watchers_.size() >= watchers_max || static_cast<std::size_t>(of_tenant) >= watchers_of_tenant_max) {
    return replies_.refuse(
        who, api::error_of({errc::queue_full, "too many clients watch this server; at most " +
                                                  std::to_string(watchers_max) + " may, and at most " +
                                                  std::to_string(watchers_of_tenant_max) + " with one key"}));
  }
  if (watchers_.empty()) told_ = who.arrived;
  replies_.begin_stream(who, "text/event-stream");
  watchers_.emplace(who.exchange, watcher{who, std::nullopt});
}

void status_watch::tell(const server_state& server, const scheduler_report& report, instant now) {
  if (watchers_.empty()) return;
  told_ = now;
  api::json workers = api::json::array();
  for (const worker_status& w : report.workers) {
    if (workers.size() == workers_shown_max) break;
    std::uint64_t& told = batches_told_[w.process];
    if (told > w.batches_total) told = 0;  // the process restarted
    workers.push_back(worker_object(w, told));
    told = w.batches_total;
  }
  if (batches_told_.size() > 4 * workers_shown_max) batches_told_.clear();
  api::json sources = api::json::object();
  for (const auto& one : server.totals.sources) {
    sources[std::string(one.name)] = {{"drafted", one.drafted}, {"accepted", one.accepted}};
  }
  const api::json event = {{"server",
                            {{"version", build_version()},
                             {"ready", server.ready},
                             {"uptime_seconds", server.uptime_seconds},
                             {"models", server.models},
                             {"conflicts", server.conflicts}}},
                           {"answers",
                            {{"running", server.answers_running},
                             {"waiting", report.waiting_count},
                             {"edit_sessions", server.edit_sessions}}},
                           {"schedulers", std::move(workers)},
                           {"tokens_total", server.totals.tokens},
                           {"drafted_total", server.totals.drafted},
                           {"accepted_total", server.totals.accepted},
                           {"sources", std::move(sources)}};
  const std::string text = "data: " + event.dump() + "\n\n";
  for (const auto& [exchange, w] : watchers_) {
    if (!w.paused) replies_.stream(w.who, text);
  }
}

void status_watch::drop_slow(instant now) {
  std::erase_if(watchers_, [&](const auto& one) {
    const watcher& w = one.second;
    if (!w.paused || now < *w.paused + slow_max) return false;
    replies_.stream(w.who, {}, true);
    return true;
  });
}

void status_watch::on(const http_flow& m, instant now) {
  const auto at = watchers_.find(m.exchange);
  if (at == watchers_.end()) return;
  at->second.paused = m.paused ? std::optional(at->second.paused.value_or(now)) : std::nullopt;
}

void status_watch::end_all() {
  for (const auto& [exchange, w] : watchers_) replies_.stream(w.who, "data: [DONE]\n\n", true);
  watchers_.clear();
}

}  // namespace redline::actors
