#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cost/cost_model.hpp"
#include "runtime/cost/running_quantile.hpp"
#include "runtime/draft/acceptance_record.hpp"
#include "runtime/draft/draft_options.hpp"
#include "runtime/draft/draft_source.hpp"
#include "runtime/draft/mtp_source.hpp"

namespace redline::draft {

/// The current cost of a round of an answer, in microseconds. Until measured, the defaults assume a CPU and a draft
/// model of about a seventh of the target's size.
struct round_costs {
  double round_us = 1000;      // without a draft: its share of a pass, and overhead
  double row_us = 5;           // one more token to verify
  double model_pass_us = 150;  // a forward pass of the draft model with one row
  double model_row_us = 0.75;  // one more row in it
};
/// target: from the last round. model: unknown until the draft model is measured. overhead_us: what a round takes in
/// addition to the target's pass.
[[nodiscard]] round_costs costs_of(const cost::step_cost& target, const cost::step_cost& model, double overhead_us);

/// A round: the tokens it is expected to add to the answer, and the draft tokens that it verifies for that.
struct round_value {
  double tokens = 1;
  double rows = 0;
  [[nodiscard]] double us(const round_costs& costs) const { return costs.round_us + rows * costs.row_us; }
  [[nodiscard]] double rate(const round_costs& costs) const { return tokens / us(costs); }
};
/// The round that verifies the part of the draft with the most tokens per microsecond.
[[nodiscard]] round_value best_round(std::span<const draft_part> draft, const round_costs& costs);

/// The outcome of drafts from the draft model; older ones count less.
struct model_tally {
  double drafts = 0;
  double rounds_saved = 0;  // additional rounds needed without the model
  double rows_saved = 0;    // rows that those would have verified, less those of its own drafts
  double passes = 0;        // equivalent number of one-row passes of the draft model
};

struct model_record {
  std::array<model_tally, grades_count> of;  // by the grade of the best copy at that position
  model_tally all;
};

/// What drafts of the MTP layer took and saved; older ones count less.
struct mtp_tally {
  double drafts = 0;
  double saved_us = 0;
  double spent_us = 0;
};

/// What the answers of a tenant have shown so far.
struct tenant_record {
  explicit tenant_record(const book_constants& constants = {}) : acceptance(constants) {}

  acceptance_record acceptance;
  model_record model;
  mtp_tally mtp;
  double answers = 0;                                    // older ones count less
  double saved_us = 0;                                   // time that the model saved in these answers
  cost::running_quantile overhead_us{0.5, 50, 1.0 / 8};  // overhead of a round in addition to the target's pass
};

/// The drafts of one answer: asks its sources, weighs their drafts, decides whether to ask the draft model, and learns
/// from the outcome. `docs/speculation.md` derives the rule. Pure except for the tenant's record: no clock, no
/// randomness.
class book {
 public:
  /// tenant: not null; it receives what is learned.
  book(const draft_options& options, std::shared_ptr<tenant_record> tenant, const book_constants& constants = {});

  /// If two drafts are worth the same, the source that was added earlier wins.
  void add(std::unique_ptr<draft_source> source);
  /// Adds the drafts of the target model's MTP layer as the last source.
  void add_mtp();
  /// Begins or continues the log with these tokens. Returns the same as `catch_up`.
  bool append(std::span<const token> committed, bool is_prompt = false);
  /// Removes tokens [at, at + count) from the log. Returns the same as `catch_up`.
  bool drop(std::uint32_t at, std::uint32_t count);
  /// Indexes a part of the new tokens, in a few milliseconds at most. Returns true if there is more; until it is done,
  /// sources that lag find nothing.
  bool catch_up();

  struct decision {
    graded_draft draft;             // verified if the model is not asked or does not answer
    std::vector<draft_part> parts;  // parts of the draft with their chances
    bool is_binding = false;
    std::uint32_t ask_model = 0;  // tokens to request from the draft model; 0 means that it is not asked
  };
  /// The work that the draft model would have to do.
  struct model_state {
    bool is_there = false;
    double unread = 0;  // tokens that it must read before it can draft
  };
  /// Cuts a draft to what may follow the log.
  using usable = std::function<void(graded_draft&)>;
  /// Chooses the draft of the round that begins, with at most `tokens_max` tokens.
  decision choose(const round_costs& costs, std::uint32_t tokens_max, const model_state& model, const usable& cut);

  /// Takes the requested draft of the model; passes: as in model_tally. Grades out of range count as the lowest.
  decision hear_model(graded_draft draft, double passes, const usable& cut);

  /// What to ask of the MTP layer after the round that begins: nothing, unless add_mtp was called and its drafts pay.
  [[nodiscard]] mtp_request ask_mtp(const round_costs& costs);
  /// Takes its draft, which continues the log's first `at` tokens.
  void hear_mtp(std::uint32_t at, const mtp_draft& draft);

  /// Call it before `append`: compares the round's drafts with the tokens that came. verified_count: of draft tokens.
  void judge(std::span<const token> came, std::uint32_t verified_count);

  /// Records what a round took in addition to its predicted pass.
  void note_overhead(double us) { tenant_->overhead_us.observe(us > 1 ? us : 1); }
  [[nodiscard]] double overhead_us() const { return tenant_->overhead_us.value(); }

 private:
  struct entry {
    std::unique_ptr<draft_source> source;
    bool is_behind = false;
  };
  struct candidate {
    graded_draft draft;
    std::vector<draft_part> parts;
    round_value value;
    standing stands = standing::text;
  };
  struct models_draft {
    graded_draft draft;
    double passes = 0;
  };
  /// What was known and decided when the round began.
  struct open_round {
    round_costs costs;
    std::vector<candidate> candidates;
    std::size_t best = 0;       // index of the best candidate; their number if there is none
    std::uint8_t grade = 0;     // grade of the best candidate
    std::uint32_t offered = 0;  // tokens of the draft that is verified
    std::uint32_t tokens_max = 0;
    std::optional<models_draft> model;
    std::optional<double> mtp_spent_us;  // for the draft of the MTP layer, if there is one
  };

  [[nodiscard]] std::vector<candidate> look_all(std::span<const token> pending, std::uint32_t tokens_max,
                                                const round_costs& costs) const;
  [[nodiscard]] static std::size_t best_of(const std::vector<candidate>& all, const round_costs& costs);
  void weigh(candidate& c, const round_costs& costs) const;
  [[nodiscard]] std::vector<draft_part> parts(const graded_draft& draft) const {
    return acceptance_.parts(draft.runs, &tenant_->acceptance);
  }
  [[nodiscard]] decision decide(graded_draft draft) const;
  [[nodiscard]] bool model_pays(const model_state& model, const round_costs& costs);
  [[nodiscard]] model_tally expected_of_model(std::uint8_t grade) const;
  [[nodiscard]] static double saved_us(const model_tally& t, const round_costs& costs);
  void learn_of_mtp(const open_round& round, std::span<const token> came, std::uint32_t verified_count);
  void learn_of(const graded_draft& draft, std::span<const token> came);
  void learn_of_model(const open_round& round, std::span<const token> came, std::uint32_t verified_count);
  void add_to_tallies(std::uint8_t grade, const model_tally& came);

  draft_options options_;
  std::shared_ptr<tenant_record> tenant_;
  book_constants constants_;
  std::vector<entry> sources_;
  mtp_source* mtp_ = nullptr;           // one of them
  std::optional<double> mtp_spent_us_;  // for its draft, which the next round can verify
  double mtp_row_us_ = 0;               // time of a row of the layer; 0 if unknown
  double since_mtp_us_ = 0;             // time since it was last asked
  mtp_tally mtp_paid_;
  acceptance_record acceptance_;
  model_record model_;
  double owed_us_ = 0;   // savings forgone since the model was last asked
  double spent_us_ = 0;  // time since then
  std::uint32_t width_;  // tokens to request from the model
  std::optional<open_round> round_;
};

}  // namespace redline::draft
