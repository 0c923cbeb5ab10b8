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

/// The tail of a committed log: tokens [from, from + tokens.size()). A receiver that holds fewer than `from` tokens
/// asks for the rest; one that holds more forgets them first.
struct log_tail {
  std::uint32_t from = 0;
  std::vector<token> tokens;
  static constexpr auto fields(auto& self) { return std::tie(self.from, self.tokens); }
};

// The numbers 0x0301 and 0x0302 belong to older forms.

/// Asks the draft model for tokens that may follow the log. Answered with `proposal`, always.
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
  /// At most this many tokens. 0 only brings the draft model's cache up to date; with method `automatic` not even that,
  /// and asks what its passes cost.
  std::uint32_t tokens_max = 0;
  std::uint32_t round_us = 0;  // what the rest of a round takes; 0: not known
  std::uint32_t row_ns = 0;    // and one more row in it
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.tenant, self.round, self.log, self.prompt_count, self.options, self.sampling,
                    self.tokens_max, self.round_us, self.row_ns);
  }
};

/// The guessed tokens, perhaps none; or where the log that the draft model holds ends, when there is a gap.
struct proposal {
  static constexpr actor::message_id id{0x0305};
  static constexpr std::string_view name = "proposal";

  session_id session;
  round_id round;
  std::vector<token> tokens;
  std::vector<draft::graded_run> runs;  // of the tokens, in order
  std::optional<std::uint32_t> log_needed_from;
  std::uint32_t draft_passes = 0;  // forwards of the draft model that had a run of this session
  std::uint32_t took_us = 0;       // that its parts of them took, without what read the log; 0: not timed
  cost::step_cost cost;            // of a forward with one row, after what the model has read
  std::uint32_t unread = 0;        // tokens of the log that it would have to read before it could draft again
  std::uint32_t reads_max = 0;     // tokens that it looks at
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
