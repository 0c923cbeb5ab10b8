#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/draft/draft_options.hpp"
#include "runtime/draft/source.hpp"
#include "runtime/sampling/sampling.hpp"

namespace redline::draft {

/// One session's request for a draft.
struct draft_request {
  session_id session;
  std::uint64_t asker = 0;  // comes back with the answer
  tenant_id tenant;
  round_id round;
  std::uint32_t from = 0;  // the tail starts here; earlier tokens are known from before
  std::vector<token> tail;
  std::vector<token> prediction;  // what the client expects; looked at when the tail starts at 0
  std::uint32_t prompt_count = 0;
  std::uint32_t tokens_max = 0;  // 0: only bring the draft model's KV up to date
  draft_options options;
  cost::step_cost step;  // of the target
  model::sampling_params sampling;
};

struct draft_answer {
  session_id session;
  std::uint64_t asker = 0;  // whose request it answers
  round_id round;
  std::vector<token> tokens;
  std::uint32_t passes = 0;       // forwards of the draft model that had a run of this session
  std::vector<draft_part> parts;  // where the tokens are from; their counts add up to tokens
};

/// Draft tokens and what speaks for them.
struct graded_draft {
  std::vector<token> tokens;
  std::vector<graded_run> runs;  // their counts add up to tokens

  void add(source from, std::uint8_t grade, std::span<const token> more) {
    if (more.empty()) return;
    tokens.insert(tokens.end(), more.begin(), more.end());
    const auto count = static_cast<std::uint32_t>(more.size());
    if (!runs.empty() && runs.back().from == from && runs.back().grade == grade) {
      runs.back().count += count;
    } else {
      runs.push_back({from, grade, count});
    }
  }
};

}  // namespace redline::draft
