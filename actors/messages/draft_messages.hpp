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

/// Asks for tokens that may follow the log. Answered with `proposal`, always.
struct propose {
  static constexpr actor::message_id id{0x0301};
  static constexpr std::string_view name = "propose";

  session_id session;
  tenant_id tenant;
  round_id round;
  log_tail log;
  std::uint32_t prompt_count = 0;
  draft::draft_options options;
  model::sampling_params sampling;
  /// At most this many tokens; 0 only brings the draft model's cache up to date.
  std::uint32_t tokens_max = 0;
  /// What the client expects as the answer. Comes with a log from 0, and is lost when that is.
  std::vector<token> prediction;
  cost::step_cost step;
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.tenant, self.round, self.log, self.prompt_count, self.options, self.sampling,
                    self.tokens_max, self.prediction, self.step);
  }
};

/// The guessed tokens, perhaps none; or where the log that the drafter holds ends, when there is a gap.
struct proposal {
  static constexpr actor::message_id id{0x0302};
  static constexpr std::string_view name = "proposal";

  session_id session;
  round_id round;
  std::vector<token> tokens;
  std::uint32_t draft_passes = 0;  // forwards of the draft model that had a run of this session
  std::optional<std::uint32_t> log_needed_from;
  std::vector<draft::draft_part> parts;  // of the tokens, in order
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.round, self.tokens, self.draft_passes, self.log_needed_from, self.parts);
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
