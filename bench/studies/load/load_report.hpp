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
  double sent = 0;      // seconds since 1970; with a rate: when it was due, so that a late client is no excuse
  double first_ms = 0;  // to the first text
  double total_ms = 0;
  std::uint64_t characters = 0;
  std::uint64_t tokens = 0;
  std::uint64_t target_passes = 0;
  token_count drafts;
  std::map<std::string, token_count> sources;  // where the server tells them apart
  std::string answer;                          // a digest of the text
  std::string error;                           // empty: answered
  std::string error_kind;                      // "http 503", "no connection", "broken off" and the like
  std::string tenant;                          // empty: nobody said
  std::string text;                            // of the answer; not recorded

  /// Milliseconds per token after the first: a pass gives several at once, so times between chunks would mean nothing.
  [[nodiscard]] double per_token_ms() const;
  bool operator==(const load_row&) const = default;
};

/// When a level was run with a method: seconds since 1970.
struct load_window {
  std::string level;
  std::string method;
  double began = 0;
  double ended = 0;
  server_counts done;  // by the server meanwhile; zeros where it did not say
  bool operator==(const load_window&) const = default;
};

/// What one process recorded, or several together.
struct load_record {
  std::vector<load_window> windows;
  std::vector<load_row> rows;

  /// Fails when `other` holds a window that is here already: the same recording twice.
  result<void> add(load_record other);
  bool operator==(const load_record&) const = default;
};

/// Leaves out what was sent in the first seconds of each window, which begins after them.
void cut_warm_up(load_record& record, double seconds);

[[nodiscard]] nlohmann::ordered_json json_of(const load_record& record);
/// name: of the file, for the failure, which also names the entry and the field.
result<load_record> parse_load_record(const std::string& text, const std::string& name);

/// Milliseconds within which an answer counts for goodput.
struct latency_target {
  double first_ms = 1000;
  double per_token_ms = 100;
};

/// What a level's requests of one tenant got.
struct tenant_summary {
  std::size_t requests = 0;
  std::size_t errors = 0;
  double first_ms_p50 = 0, first_ms_p99 = 0;
  double tokens_per_second = 0;  // of an answer, in the mean
};

/// A level by a method.
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
  percentiles first_ms, per_token_ms, total_ms;  // of the answered
  double characters_per_second = 0;
  double tokens_per_second = 0;
  double goodput = 0;  // answers within the target per second
  double good_share = 0;
  double rows_per_pass = 0;  // of the target model, all users' together; 0: the server did not say
  double busy_share = 0;     // of the time, in its passes; likewise
  double accepted_per_pass = 0;
  std::map<std::string, double> accepted_per_pass_by_source;
  std::map<std::string, std::size_t> errors_by_kind;
  std::map<std::string, tenant_summary> tenants;  // none where nobody said who asks
  double fairness = 1;                            // Jain's index of their answers' speed: 1 where all are alike
};

/// In the order in which levels and methods first appear.
[[nodiscard]] std::vector<load_summary> summarise(const load_record& record, const latency_target& target);
[[nodiscard]] nlohmann::ordered_json json_of(const load_summary& summary);
/// Items that were not answered alike everywhere: none while speculation is exact.
[[nodiscard]] std::vector<std::string> differing_items(const load_record& record);

}  // namespace redline::studies
