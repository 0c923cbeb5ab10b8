#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/studies/common/edit_corpus.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

/// A closed loop of clients that each wait for their answer, an open loop of Poisson arrivals, or a trace.
struct load_level {
  bool is_rate = false;  // requests come when they are due, as with a trace
  double amount = 1;     // clients, requests (or first requests of conversations) per second, or a trace's speed-up
  bool is_trace = false;

  /// A name such as "4 clients" or "2.5/s".
  [[nodiscard]] std::string name() const;
  bool operator==(const load_level&) const = default;
};

struct load_mix {
  double completions = 0;          // share of short completions among edits
  std::uint32_t tokens_max = 256;  // limit of an edit's answer
  bool predict = false;            // send the old file as an edit's prediction
  std::uint32_t turns = 1;         // turns of a conversation: each question includes the earlier ones and their answers
  double think_seconds = 0;        // mean time between an answer and the next question of a conversation
  std::vector<std::string> tenants;  // take turns by conversation; empty means that requests name no tenant
};

struct http_question {
  std::string path;
  std::string body;
};

/// One request of a level, the same for every method.
struct planned_request {
  std::string item;  // identifies the question: the same item gets the same answer
  double due = 0;    // seconds after the level began; 0 with clients that wait
  bool is_edit = true;
  std::size_t edit = 0;  // index among the edits
  std::string tenant;
  std::string session;                 // requests of one session follow one another; empty means a single request
  double think = 0;                    // seconds after the previous answer
  std::optional<http_question> given;  // set by a trace
};

/// A question of a conversation and its answer.
struct past_turn {
  std::size_t edit = 0;
  std::string answer;
};

/// The same seed, level and edits give the same requests on every machine. Rates arrive as a Poisson process. `count`
/// includes all turns of conversations.
[[nodiscard]] std::vector<planned_request> plan_requests(const load_level& level, std::size_t count, std::uint64_t seed,
                                                         const std::vector<known_edit>& edits, const load_mix& mix);

/// The request to post, streaming and with usage. `before` contains the earlier turns of its conversation.
[[nodiscard]] http_question question_of(const planned_request& planned, const std::vector<known_edit>& edits,
                                        const load_mix& mix, const std::string& method,
                                        const std::vector<past_turn>& before = {});

/// Doubles the rate from `first` on while `holds` is true, then halves the interval that contains the limit four times.
/// Returns the highest rate that held, or 0 if none did. Fails when `holds` fails.
[[nodiscard]] result<double> find_highest_rate(double first, const std::function<result<bool>(double rate)>& holds);

}  // namespace redline::studies
