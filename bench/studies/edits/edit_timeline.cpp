#include "bench/studies/edits/edit_timeline.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace redline::studies {
namespace {

edit_part part_of(std::string_view actor) {
  if (actor == "target model") return edit_part::target_model;
  if (actor == "draft model") return edit_part::draft_model;
  if (actor == "cache manager") return edit_part::cache_manager;
  return actor.starts_with("session") ? edit_part::session : edit_part::other;
}

double in_seconds(std::int64_t us) { return static_cast<double>(us) / 1e6; }

/// The mean seconds of a pass with this many rows; between two measured widths, on the line through them.
double seconds_at(const std::map<std::uint32_t, std::pair<double, double>>& measured, std::uint32_t rows) {
  const auto mean = [](const auto& entry) { return entry.second.first / entry.second.second; };
  const auto above = measured.lower_bound(rows);
  if (above == measured.end()) return mean(*measured.rbegin());
  if (above->first == rows || above == measured.begin()) return mean(*above);
  const auto below = std::prev(above);
  const double share = static_cast<double>(rows - below->first) / (above->first - below->first);
  return mean(*below) + share * (mean(*above) - mean(*below));
}

}  // namespace

void activity_record::note(const actor::activity& a) {
  const auto us = [](instant at) {
    return std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
  };
  const std::scoped_lock lock(mutex_);
  noted_.push_back({part_of(a.actor), a.message == "forward_batch", us(a.begin), us(a.end)});
}

std::vector<busy_time> activity_record::take() {
  const std::scoped_lock lock(mutex_);
  auto out = std::exchange(noted_, {});
  std::stable_sort(out.begin(), out.end(), [](const busy_time& a, const busy_time& b) { return a.end < b.end; });
  return out;
}

double decoding_times::waiting() const { return whole - std::accumulate(busy.begin(), busy.end(), 0.0); }

decoding_times decoding_times_of(std::span<const busy_time> busy, std::size_t rounds) {
  decoding_times out;
  std::vector<busy_time> passes;
  std::int64_t end = 0;
  for (const busy_time& b : busy) {
    if (b.is_pass) passes.push_back(b);
    if (b.part == edit_part::session) end = b.end;
  }
  if (rounds < 2 || passes.size() < rounds) return out;
  // Passes before the first round's end are of the prompt.
  const std::size_t first = passes.size() - (rounds - 1);
  const std::int64_t begin = passes[first - 1].end;
  for (std::size_t i = first; i < passes.size(); ++i) out.passes.push_back(in_seconds(passes[i].end - passes[i].begin));
  // At each time counts the first part that is busy: takes the times of one part after the other out of what is left.
  std::map<std::int64_t, std::int64_t> left;  // begin and end
  if (end > begin) left.emplace(begin, end);
  out.whole = in_seconds(std::max(end - begin, std::int64_t{0}));
  for (std::size_t part = 0; part < edit_parts_count; ++part) {
    for (const busy_time& b : busy) {
      if (static_cast<std::size_t>(b.part) != part) continue;
      auto at = left.upper_bound(b.begin);
      if (at != left.begin()) --at;
      while (at != left.end() && at->first < b.end) {
        const auto [from, to] = *at;
        const std::int64_t taken_from = std::max(from, b.begin), taken_to = std::min(to, b.end);
        if (taken_from >= taken_to) {
          ++at;
          continue;
        }
        out.busy[part] += in_seconds(taken_to - taken_from);
        at = left.erase(at);
        if (from < taken_from) left.emplace(from, taken_from);
        if (taken_to < to) at = left.emplace(taken_to, to).first;
      }
    }
  }
  return out;
}

std::vector<width_summary> summarise_widths(std::span<const std::vector<answer_replay::step>> steps,
                                            std::span<const decoding_times> times) {
  std::map<std::uint32_t, std::pair<double, double>> measured;  // seconds and passes by rows
  const auto for_each_pass = [&](const auto& f) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto& passes = times[i].passes;
      if (passes.size() + 1 != steps[i].size()) continue;
      for (std::size_t k = 0; k < passes.size(); ++k) f(steps[i][k + 1], passes[k]);
    }
  };
  for_each_pass([&](const answer_replay::step& s, double seconds) {
    auto& [sum, count] = measured[s.drafted + 1];
    sum += seconds;
    count += 1;
  });
  std::map<std::uint32_t, width_summary> widths;
  for_each_pass([&](const answer_replay::step& s, double seconds) {
    width_summary& w = widths[std::bit_ceil(s.drafted + 1)];
    w.rows_max = std::bit_ceil(s.drafted + 1);
    ++w.passes;
    w.rows += s.drafted + 1;
    w.tokens += s.accepted + 1;
    w.seconds += seconds;
    w.least_seconds += std::min(seconds, seconds_at(measured, s.accepted + 1));
  });
  std::vector<width_summary> out;
  for (const auto& [rows, w] : widths) out.push_back(w);
  return out;
}

nlohmann::ordered_json json_of(std::span<const busy_time> busy) {
  auto out = nlohmann::ordered_json::array();
  std::int64_t first = busy.empty() ? 0 : busy.front().begin;
  for (const busy_time& b : busy) first = std::min(first, b.begin);
  for (const busy_time& b : busy) {
    out.push_back({edit_part_names[static_cast<std::size_t>(b.part)], b.begin - first, b.end - first});
  }
  return out;
}

}  // namespace redline::studies
