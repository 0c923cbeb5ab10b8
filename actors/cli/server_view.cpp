#include "actors/cli/server_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "actors/cli/json_members.hpp"

namespace redline::actors::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t word_bytes_max = 200;

/// Keeps only printable characters, because a terminal obeys control sequences.
std::string printable(std::string_view text) {
  std::string out(text.substr(0, word_bytes_max));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return out;
}

double number(const json& object, const char* name) {
  const json& m = member(object, name);
  const double value = m.is_number() ? m.get<double>() : 0;
  return std::isfinite(value) ? std::clamp(value, 0.0, 1e15) : 0;
}
std::string word(const json& m) { return m.is_string() ? printable(m.get_ref<const std::string&>()) : std::string(); }
bool flag(const json& object, const char* name) { return member(object, name) == json(true); }

std::string text_of(double value, int digits = 0) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string share(double part, double whole) { return whole > 0 ? text_of(100 * part / whole) + " %" : "-"; }

std::string duration(double seconds) {
  if (seconds < 120) return text_of(std::floor(seconds)) + " s";
  if (seconds < 7200) return text_of(std::floor(seconds / 60)) + " min";
  return text_of(seconds / 3600, 1) + " h";
}

/// Joins cells into lines, with as many cells as fit on each.
void flow(const std::vector<std::string>& cells, std::size_t width, std::vector<std::string>& lines) {
  std::string line;
  for (const std::string& cell : cells) {
    if (cell.empty()) continue;
    if (!line.empty() && line.size() + 3 + cell.size() > width) lines.push_back(std::exchange(line, {}));
    line += (line.empty() ? "" : "   ") + cell;
    if (line.size() > width) line.resize(width);
  }
  if (!line.empty()) lines.push_back(line);
}

}  // namespace

result<server_status> server_status::parse(const std::string& event) {
  const json all = json::parse(event, nullptr, false);
  if (!all.is_object() || !member(all, "server").is_object() || !member(all, "schedulers").is_array()) {
    return failure{errc::malformed_message,
                   "this version of redline does not understand the server's status; use the same version for both"};
  }
  server_status s;
  const json& server = member(all, "server");
  const json& answers = member(all, "answers");
  s.version = word(member(server, "version"));
  s.ready = flag(server, "ready");
  s.uptime_seconds = number(server, "uptime_seconds");
  if (const json& models = member(server, "models"); models.is_array()) {
    for (const json& m : models) {
      if (s.models.size() > word_bytes_max) break;
      s.models += (s.models.empty() ? "" : ", ") + word(m);
    }
  }
  if (const json& conflicts = member(server, "conflicts"); conflicts.is_array()) {
    for (const json& one : conflicts) {
      if (s.conflicts.size() == server_view::conflicts_max) break;
      s.conflicts.push_back(word(one));
    }
  }
  s.running = number(answers, "running");
  s.waiting = number(answers, "waiting");
  s.edit_sessions = number(answers, "edit_sessions");
  s.tokens = number(all, "tokens_total");
  s.drafted = number(all, "drafted_total");
  s.accepted = number(all, "accepted_total");
  if (const json& sources = member(all, "sources"); sources.is_object()) {
    for (const auto& [name, counts] : sources.items()) {
      if (s.sources.size() == 16) break;
      s.sources.push_back({printable(name), number(counts, "drafted"), number(counts, "accepted")});
    }
  }
  for (const json& w : member(all, "schedulers")) {
    if (s.workers.size() == server_view::workers_max) break;
    const std::string id = word(member(w, "worker")), name = word(member(w, "name"));
    s.workers.push_back({.id = id,
                         .name = name.empty() ? id : name,
                         .ready = flag(w, "ready"),
                         .running = number(w, "running"),
                         .waiting = number(w, "waiting"),
                         .pages = number(w, "pages"),
                         .pages_held = number(w, "pages_held"),
                         .preempted = number(w, "preempted_total"),
                         .cost_error = number(w, "cost_error_ratio"),
                         .batch_fill = number(w, "batch_fill"),
                         .batches = number(w, "batches_total"),
                         .rows = number(w, "rows_total"),
                         .busy_us = number(w, "busy_us_total")});
  }
  return s;
}

std::string_view name_of(worker_order order) {
  constexpr std::string_view names[] = {"name", "running", "pages", "passes"};
  return order < worker_order::last_ ? names[static_cast<std::size_t>(order)] : "?";
}

void server_view::take(server_status now, double seconds) {
  before_ = std::exchange(now_, std::move(now));
  seconds_ = std::max(seconds - std::exchange(at_, seconds), 1e-3);
}

server_view::rates server_view::rates_of(const totals& now, const totals& before) const {
  const double passes = now.batches - before.batches;
  if (passes <= 0) return {};  // or the server restarted
  return {.passes = passes / seconds_,
          .rows_per_pass = std::max(0.0, now.rows - before.rows) / passes,
          .busy = std::clamp((now.busy_us - before.busy_us) / 1e6 / seconds_, 0.0, 1.0)};
}

server_view::rates server_view::rates_of(const server_status::worker& w) const {
  if (!before_) return {};
  const auto was = std::ranges::find(before_->workers, w.id, &server_status::worker::id);
  if (was == before_->workers.end()) return {};
  return rates_of(totals{w.batches, w.rows, w.busy_us}, totals{was->batches, was->rows, was->busy_us});
}

server_view::rates server_view::all_rates() const {
  rates sum;
  double rows = 0;
  for (const auto& w : now_->workers) {
    const rates r = rates_of(w);
    sum.passes += r.passes;
    sum.busy += r.busy / static_cast<double>(now_->workers.size());
    rows += r.rows_per_pass * r.passes;
  }
  sum.rows_per_pass = sum.passes > 0 ? rows / sum.passes : 0;
  return sum;
}

double server_view::tokens_per_second() const {
  return before_ ? std::max(0.0, now_->tokens - before_->tokens) / seconds_ : 0;
}

std::vector<std::string> server_view::table(std::size_t width, worker_order order) const {
  struct row {
    const server_status::worker* w;
    rates r;
  };
  std::vector<row> rows;
  for (const auto& w : now_->workers) rows.push_back({&w, rates_of(w)});
  std::ranges::stable_sort(rows, [order](const row& a, const row& b) {
    switch (order) {
      case worker_order::running:
        return a.w->running > b.w->running;
      case worker_order::pages:
        return a.w->pages_held > b.w->pages_held;
      case worker_order::rate:
        return a.r.passes > b.r.passes;
      default:
        return a.w->name < b.w->name;
    }
  });
  constexpr std::array<std::string_view, 10> heads = {"worker",    "running", "waiting", "pages",     "passes/s",
                                                      "rows/pass", "fill",    "busy",    "preempted", "cost off"};
  std::vector<std::array<std::string, heads.size()>> cells;
  for (const auto& [w, r] : rows) {
    cells.push_back({w->name + (w->ready ? "" : " (not ready)"), text_of(w->running), text_of(w->waiting),
                     text_of(w->pages_held) + "/" + text_of(w->pages), text_of(r.passes), text_of(r.rows_per_pass, 1),
                     share(w->batch_fill, 1), share(r.busy, 1), text_of(w->preempted), share(w->cost_error, 1)});
  }
  // Omits columns that do not fit, starting with the last.
  std::vector<std::string> lines(cells.size() + 1);
  for (std::size_t column = 0; column < heads.size(); ++column) {
    std::size_t size = heads[column].size();
    for (const auto& c : cells) size = std::max(size, c[column].size());
    if (column > 0 && lines[0].size() + 2 + size > width) break;
    const auto put = [&](std::string& line, std::string_view text) {
      const std::string room(size - text.size(), ' ');
      line += column == 0 ? std::string(text) + room : "  " + room + std::string(text);
    };
    put(lines[0], heads[column]);
    for (std::size_t i = 0; i < cells.size(); ++i) put(lines[i + 1], cells[i][column]);
  }
  return lines;
}

std::vector<std::string> server_view::lines(std::size_t width, std::size_t height, worker_order order) const {
  if (!now_) return {};
  width = std::max<std::size_t>(width, 1);
  const server_status& s = *now_;
  double pages = 0, held = 0;
  for (const auto& w : s.workers) pages += w.pages, held += w.pages_held;
  const rates r = all_rates();
  std::vector<std::string> out;
  flow({"redline " + s.version, s.ready ? "ready" : "NOT READY", "up " + duration(s.uptime_seconds), s.models}, width,
       out);
  flow({text_of(tokens_per_second()) + " tokens/s", text_of(s.running) + " running", text_of(s.waiting) + " waiting",
        text_of(s.edit_sessions) + " edit sessions"},
       width, out);
  for (const std::string& one : s.conflicts) flow({"CONFLICT: " + one}, width, out);
  std::vector<std::string> drafts{"drafts accepted " + share(s.accepted, s.drafted)};
  for (const auto& one : s.sources) drafts.push_back(one.name + " " + share(one.accepted, one.drafted));
  flow(drafts, width, out);
  flow({"KV pages " + text_of(held) + "/" + text_of(pages), text_of(r.passes) + " passes/s",
        text_of(r.rows_per_pass, 1) + " rows/pass", "busy " + share(r.busy, 1)},
       width, out);
  if (s.workers.empty()) {
    flow({"no scheduler is responding"}, width, out);
  } else {
    auto rows = table(width, order);
    std::move(rows.begin(), rows.end(), std::back_inserter(out));
  }
  for (std::string& one : out) {
    if (one.size() > width) one.resize(width);
  }
  if (height > 0 && out.size() > height) out.resize(height);
  return out;
}

std::vector<std::string> server_view::legend(std::size_t width, std::size_t height) {
  static constexpr std::array<std::string_view, 13> texts = {
      "tokens/s         tokens per second of all answers, over the last half second",
      "drafts accepted  share of the drafted tokens that the model accepted, in total and by source",
      "KV pages         in use/total; a page has 32 tokens",
      "",
      "running          answers being computed",
      "waiting          answers waiting for a slot",
      "passes/s         forward passes of the target model",
      "rows/pass        tokens computed in a pass, including drafted ones",
      "fill             share of the answers ready to decode that are in a pass",
      "busy             share of the time spent in passes",
      "preempted        answers that lost their pages to others and were recomputed, since the start",
      "cost off         difference between the measured and predicted time of a pass",
      "(not ready)      the worker is loading, draining or gone"};
  std::vector<std::string> out;
  for (const auto text : texts) {
    if (height == 0 || out.size() < height) out.emplace_back(text.substr(0, width));
  }
  return out;
}

std::string server_view::line() const {
  if (!now_) return {};
  double held = 0;
  for (const auto& w : now_->workers) held += w.pages_held;
  const rates r = all_rates();
  char text[160];
  std::snprintf(text, sizeof text, "%9.0f  %7.0f  %7.0f  %10.0f  %8s  %8.0f  %9.1f  %4s", tokens_per_second(),
                now_->running, now_->waiting, held, share(now_->accepted, now_->drafted).c_str(), r.passes,
                r.rows_per_pass, share(r.busy, 1).c_str());
  return text;
}

}  // namespace redline::actors::cli
