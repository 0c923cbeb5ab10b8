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

/// An answer that is known, and what there was before it.
struct known_answer {
  std::vector<token> prompt;
  std::vector<token> prediction;  // empty: the request has none
  std::vector<token> answer;
};

/// What passes take, microseconds; fixed, so that every decision repeats.
struct pass_prices {
  double target_us = 2000;  // of one row
  double row_us = 100;      // one more
  double model_us = 150;    // the draft model's
  double model_row_us = 8;
  double overhead_us = 200;  // of a round, beside its passes
};

/// What an answer took.
struct replay_cost {
  double us = 0;
  std::uint64_t rounds = 0;
  std::uint64_t rows = 0;
  std::uint64_t model_passes = 0;
  std::uint64_t model_rows = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(draft::source::last_)> accepted{};  // draft tokens, by source
  replay_cost& operator+=(const replay_cost& other);
};

/// Replays known answers, one after the other, by the rule that servers use: a book of drafts each, its tenant's record
/// between them. Passes are priced and not computed. The draft model agrees with everything looked up that is right,
/// and is right in a share of its own tokens, at places that chance fixes; it reads all of the log.
class draft_replay_study {
 public:
  struct setting {
    draft::method how = draft::method::automatic;
    pass_prices prices;
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
