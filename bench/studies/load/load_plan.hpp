#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/studies/common/edit_corpus.hpp"

namespace redline::studies {

/// A closed loop of clients that each wait for their answer, or an open loop of Poisson arrivals.
struct load_level {
  bool is_rate = false;
  double amount = 1;  // clients, or requests per second

  /// "4 clients", "2.5/s"
  [[nodiscard]] std::string name() const;
  bool operator==(const load_level&) const = default;
};

struct load_mix {
  double completions = 0;          // share of short completions among edits
  std::uint32_t tokens_max = 256;  // of an edit's answer
  bool predict = false;            // send the old file as an edit's prediction
};

/// One request of a level, the same for every method.
struct planned_request {
  std::string item;  // which question: the same item gets the same answer
  double due = 0;    // seconds after the level began; 0 with clients that wait
  bool is_edit = true;
  std::size_t edit = 0;  // index among the edits
};

/// The same seed, level and edits give the same requests on every machine. Rates arrive as a Poisson process.
[[nodiscard]] std::vector<planned_request> plan_requests(const load_level& level, std::size_t count, std::uint64_t seed,
                                                         const std::vector<known_edit>& edits, const load_mix& mix);

struct http_question {
  std::string path;
  std::string body;
};
/// What is posted for a planned request, streaming and with usage.
[[nodiscard]] http_question question_of(const planned_request& planned, const std::vector<known_edit>& edits,
                                        const load_mix& mix, const std::string& method);

}  // namespace redline::studies
