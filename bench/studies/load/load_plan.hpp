#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/studies/common/edit_corpus.hpp"
#include "runtime/base/result.hpp"

namespace redline::studies {

/// A closed loop of clients that each wait for their answer, an open loop of Poisson arrivals, or a trace's arrivals.
struct load_level {
  bool is_rate = false;  // a trace's, too: requests come when they are due
  double amount = 1;     // clients, requests (of conversations: first ones) per second, or how many times as fast
  bool is_trace = false;

  /// "4 clients", "2.5/s"
  [[nodiscard]] std::string name() const;
  bool operator==(const load_level&) const = default;
};

struct load_mix {
  double completions = 0;            // share of short completions among edits
  std::uint32_t tokens_max = 256;    // of an edit's answer
  bool predict = false;              // send the old file as an edit's prediction
  std::uint32_t turns = 1;           // of a conversation: each question has those before it and their answers
  double think_seconds = 0;          // mean time between an answer and the next question of a conversation
  std::vector<std::string> tenants;  // take turns by conversation; empty: nobody says who asks
};

struct http_question {
  std::string path;
  std::string body;
};

/// One request of a level, the same for every method.
struct planned_request {
  std::string item;  // which question: the same item gets the same answer
  double due = 0;    // seconds after the level began; 0 with clients that wait
  bool is_edit = true;
  std::size_t edit = 0;  // index among the edits
  std::string tenant;
  std::string session;                 // requests of one come one after the other; empty: alone
  double think = 0;                    // seconds after the answer before it
  std::optional<http_question> given;  // by a trace
};

/// A question of a conversation and what was answered.
struct past_turn {
  std::size_t edit = 0;
  std::string answer;
};

/// The same seed, level and edits give the same requests on every machine. Rates arrive as a Poisson process. count:
/// with all turns of conversations.
[[nodiscard]] std::vector<planned_request> plan_requests(const load_level& level, std::size_t count, std::uint64_t seed,
                                                         const std::vector<known_edit>& edits, const load_mix& mix);

/// What is posted for a planned request, streaming and with usage. before: of its conversation.
[[nodiscard]] http_question question_of(const planned_request& planned, const std::vector<known_edit>& edits,
                                        const load_mix& mix, const std::string& method,
                                        const std::vector<past_turn>& before = {});

/// Doubles the rate from `first` on while it holds, then halves the interval in which it ceases to, four times: the
/// highest one that held, 0 when none did. Fails when `holds` does.
[[nodiscard]] result<double> find_highest_rate(double first, const std::function<result<bool>(double rate)>& holds);

}  // namespace redline::studies
