#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/draft/acceptance_record.hpp"
#include "runtime/draft/draft_policy.hpp"
#include "runtime/draft/draft_request.hpp"
#include "runtime/draft/edit_cursor.hpp"
#include "runtime/draft/prompt_lookup.hpp"

namespace redline::draft {

/// What a tenant's answers showed so far.
struct tenant_drafts {
  acceptance_record acceptance;
  std::shared_ptr<draft_policy> policy = std::make_shared<draft_policy>();
};

/// What lookup and the prediction have after a text, and which of the two is believed.
struct ready_drafts {
  graded_draft looked_up;
  graded_draft predicted;  // and after the prediction's end what lookup has there
  bool trusts_prediction = false;

  [[nodiscard]] const graded_draft& believed() const { return trusts_prediction ? predicted : looked_up; }
  /// Of the believed draft.
  [[nodiscard]] std::uint8_t grade() const { return believed().runs.empty() ? 0 : believed().runs.front().grade; }
};

/// What a drafter holds of one answer, without the draft model's KV: its log, the prediction, and what was learned of
/// its drafts. All of it may be forgotten, and comes back with the next request's log.
class draft_session {
 public:
  draft_session(tenant_id tenant, std::shared_ptr<tenant_drafts> tenants_drafts);

  [[nodiscard]] tenant_id tenant() const { return tenant_; }
  [[nodiscard]] const text::prompt_lookup& log() const { return log_; }

  /// The log goes on from `r.from`. Learns from what came after the last round's drafts.
  void take_log(draft_request& r);

  /// Drafts that need no model, of at most `most` tokens.
  [[nodiscard]] ready_drafts ready(const draft_options& options, bool predicts, std::uint32_t most) const {
    return ready_after(prediction_, {}, options, predicts, most);
  }
  [[nodiscard]] std::vector<draft_part> parts(std::span<const graded_run> runs) const {
    return acceptance_.parts(runs, &tenants_drafts_->acceptance);
  }
  /// A copy's chance to be right up to here, given what was seen of its grade.
  [[nodiscard]] double chance(source from, std::uint8_t grade, std::uint32_t place) const {
    return acceptance_.chance(from, grade, place, &tenants_drafts_->acceptance);
  }

  /// Drafts of the round at hand, to be compared with what comes.
  void begin_round(const ready_drafts& drafts);
  /// What the model has to read before it can draft.
  struct models_reading {
    double unread = 0;
    double tokens_to_come = 0;
  };
  /// The same, and true if the model is to draft. Then its draft is told, too.
  [[nodiscard]] bool begin_round(const ready_drafts& drafts, double tokens_max, const models_reading& reading,
                                 const round_prices& prices);
  void note_models_draft(const graded_draft& draft, double passes);

 private:
  struct models_draft {
    graded_draft draft;
    double passes = 0;
  };
  /// The drafts of a round, and of which log they are.
  struct open_round {
    std::size_t log_count = 0;
    ready_drafts ready;
    bool weighs_model = false;  // the policy has chosen, at these prices
    round_prices prices;
    round_value ready_value;  // of the copy that was believed, as the policy was told
    std::optional<models_draft> model;
  };

  [[nodiscard]] ready_drafts ready_after(const text::edit_cursor& prediction, std::span<const token> pending,
                                         const draft_options& options, bool predicts, std::uint32_t most) const;
  void learn(const draft_request& r);
  void learn_of(const graded_draft& draft, std::span<const token> came);
  struct rounds_ahead {
    double rounds = 0;
    double rows = 0;
  };
  [[nodiscard]] rounds_ahead rounds_without_model(const draft_request& r, const round_prices& prices) const;
  void follow_prediction(const draft_request& r);

  tenant_id tenant_;
  std::shared_ptr<tenant_drafts> tenants_drafts_;
  text::prompt_lookup log_;       // the committed tokens, indexed
  text::edit_cursor prediction_;  // fed with the answer's tokens before the index `predicted_to_` of the log
  std::size_t predicted_to_ = 0;
  acceptance_record acceptance_;
  draft_policy policy_;
  disagreement_record disagreements_;
  std::optional<open_round> round_;
};

}  // namespace redline::draft
