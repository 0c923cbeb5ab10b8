#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/studies/load/server_counts.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

struct token_count {
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  bool operator==(const token_count&) const = default;
};

/// One request as its client saw it.
struct load_row {
  std::string level;
  std::string method;
  std::string item;
  double sent = 0;      // seconds since 1970; with a rate, the due time, so that a late client does not hide delays
  double first_ms = 0;  // time to the first text
  double total_ms = 0;
  std::uint64_t characters = 0;
  std::uint64_t tokens = 0;
  std::uint64_t target_passes = 0;
  token_count drafts;
  std::map<std::string, token_count> sources;  // if the server reports them separately
  std::string answer;                          // a digest of the text
  std::string error;                           // empty if answered
  std::string error_kind;                      // "http 503", "no connection", "broken off" and the like
  std::string tenant;                          // empty if the request names none
  std::string text;                            // the answer's text; not recorded

  /// Milliseconds per token after the first. A pass gives several tokens at once, so times between chunks mean nothing.
  [[nodiscard]] double per_token_ms() const;
  bool operator==(const load_row&) const = default;
};

/// The time of a level's run with a method, in seconds since 1970.
struct load_window {
  std::string level;
  std::string method;
  double began = 0;
  double ended = 0;
  server_counts done;  // what the server did in that time; zeros where it does not report
  bool operator==(const load_window&) const = default;
};

/// The recording of one process, or of several together.
struct load_record {
  std::vector<load_window> windows;
  std::vector<load_row> rows;

  /// Fails when `other` contains a window that is here already, which means the same recording twice.
  result<void> add(load_record other);
  bool operator==(const load_record&) const = default;
};

/// Drops requests sent in the first seconds of each window, and moves the window's beginning after them.
void cut_warm_up(load_record& record, double seconds);

[[nodiscard]] nlohmann::ordered_json json_of(const load_record& record);
/// `name` is the file's name for the failure, which also names the entry and the field.
result<load_record> parse_load_record(const std::string& text, const std::string& name);

/// The milliseconds within which an answer counts for goodput.
struct latency_target {
  double first_ms = 1000;
  double per_token_ms = 100;
};

/// What a level's requests of one tenant received.
struct tenant_summary {
  std::size_t requests = 0;
  std::size_t errors = 0;
  double first_ms_p50 = 0, first_ms_p99 = 0;
  double tokens_per_second = 0;  // mean over the answers
};

/// A summary of a level with a method.
struct load_summary {
  std::string level;
  std::string method;
  std::size_t requests = 0;
  std::size_t errors = 0;
  double seconds = 0;  // the union of its windows
  struct percentiles {
    double p50 = 0;
    double p99 = 0;
  };
  percentiles first_ms, per_token_ms, total_ms;  // over the answered requests
  double characters_per_second = 0;
  double tokens_per_second = 0;
  double goodput = 0;  // answers within the target, per second
  double good_share = 0;
  double rows_per_pass = 0;  // rows in a pass of the target model, over all users; 0 if the server does not report it
  double busy_share = 0;     // share of the time in passes; 0 if the server does not report it
  double accepted_per_pass = 0;
  std::map<std::string, double> accepted_per_pass_by_source;
  std::map<std::string, std::size_t> errors_by_kind;
  std::map<std::string, tenant_summary> tenants;  // empty if requests name no tenant
  double fairness = 1;                            // Jain's index of the speed of their answers; 1 if all are alike
};

/// Lists levels and methods in the order in which they first appear.
[[nodiscard]] std::vector<load_summary> summarise(const load_record& record, const latency_target& target);
[[nodiscard]] nlohmann::ordered_json json_of(const load_summary& summary);
/// Items whose answers differ; there are none while speculation is exact.
[[nodiscard]] std::vector<std::string> differing_items(const load_record& record);

}  // namespace redline::studies
