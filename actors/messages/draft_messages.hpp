#pragma once

#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/draft/draft_options.hpp"
#include "runtime/draft/source.hpp"
#include "runtime/sampling/sampling.hpp"

namespace redline::actors {

/// The tail of a committed log: tokens [from, from + tokens.size()). A receiver that has fewer than `from` tokens asks
/// for the rest; one that has more drops them first.
struct log_tail {
  std::uint32_t from = 0;
  std::vector<token> tokens;
  static constexpr auto fields(auto& self) { return std::tie(self.from, self.tokens); }
};

// The numbers 0x0301 and 0x0302 belong to older forms.

/// Asks the draft model for tokens that may follow the log. Always answered with `proposal`.
struct propose {
  static constexpr actor::message_id id{0x0304};
  static constexpr std::string_view name = "propose";

  session_id session;
  tenant_id tenant;
  round_id round;
  log_tail log;
  std::uint32_t prompt_count = 0;
  draft::draft_options options;
  sampling::sampling_params sampling;
  /// The most tokens to propose. 0 only brings the draft model's cache up to date; with method `automatic` it does not
  /// even do that, but asks what the draft model's passes cost.
  std::uint32_t tokens_max = 0;
  std::uint32_t round_us = 0;  // time of the rest of a round; 0 if unknown
  std::uint32_t row_ns = 0;    // time that one more row adds to it
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.tenant, self.round, self.log, self.prompt_count, self.options, self.sampling,
                    self.tokens_max, self.round_us, self.row_ns);
  }
};

/// The drafted tokens, possibly none; or, when there is a gap, where the draft model's copy of the log ends.
struct proposal {
  static constexpr actor::message_id id{0x0305};
  static constexpr std::string_view name = "proposal";

  session_id session;
  round_id round;
  std::vector<token> tokens;
  std::vector<draft::graded_segment> runs;  // cover the tokens, in order
  std::optional<std::uint32_t> log_needed_from;
  std::uint32_t draft_passes = 0;  // passes of the draft model with a run of this session
  std::uint32_t took_us = 0;       // time of its share of those passes, without reading the log; 0 if not timed
  cost::step_cost cost;            // cost of a pass with one row, after what the model has read
  std::uint32_t unread = 0;        // tokens of the log that it must read before it can draft again
  std::uint32_t reads_max = 0;     // most tokens that it looks at
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.round, self.tokens, self.runs, self.log_needed_from, self.draft_passes,
                    self.took_us, self.cost, self.unread, self.reads_max);
  }
};

/// The session is over; its drafting state can go.
struct forget {
  static constexpr actor::message_id id{0x0303};
  static constexpr std::string_view name = "forget";

  session_id session;
  static constexpr auto fields(auto& self) { return std::tie(self.session); }
};

}  // namespace redline::actors
