#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/studies/common/names.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/draft/book.hpp"

namespace redline::studies {

/// A known answer and the text before it.
struct known_answer {
  std::vector<token> prompt;
  std::vector<token> prediction;  // empty if the request has none
  std::vector<token> answer;
  draft::source predicted_by = draft::source::prediction;
};

/// The microseconds that passes take. They are fixed, so that every decision repeats.
struct pass_costs {
  double target_us = 2000;  // a pass with one row
  double row_us = 100;      // each further row after the free ones
  double free_rows = 0;     // further rows that cost nothing, since the weights are being read
  double model_us = 150;    // a pass of the draft model
  double model_row_us = 8;
  double overhead_us = 200;  // time of a round in addition to its passes
};

/// What an answer cost.
struct replay_cost {
  double us = 0;
  std::uint64_t rounds = 0;
  std::uint64_t rows = 0;
  std::uint64_t model_passes = 0;
  std::uint64_t model_rows = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(draft::source::last_)> accepted{};  // draft tokens, by source
  replay_cost& operator+=(const replay_cost& other);
};

/// Replays known answers, one after the other, by the rule of servers: each has its own draft book, and the tenant's
/// record lasts between them. Passes have a cost but are not computed. The draft model agrees with every right lookup
/// token, and a share of its own tokens, at positions fixed by chance, is right; it reads the whole log.
class draft_replay_study {
 public:
  struct setting {
    draft::method how = draft::method::automatic;
    pass_costs costs;
    double model_right = 0.8;
    draft::book_constants constants;
  };
  explicit draft_replay_study(const setting& s);

  replay_cost replay(const known_answer& known);

 private:
  setting setting_;
  std::shared_ptr<draft::tenant_record> tenant_;
};

}  // namespace redline::studies
