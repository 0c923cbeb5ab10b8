#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/messages/verify_messages.hpp"
#include "actors/serving/shared_grammars.hpp"
#include "runtime/actor/address.hpp"
#include "runtime/trace/tracer.hpp"

namespace redline::actors {

/// A round as a session asked for it.
struct asked_round {
  actor::address session;
  verify_run run;
  trace::span_context span{};  // span of the answer
};

/// Adds a round to those of its sequence that wait, unless the same or a later one does already. Earlier ones stay,
/// because its splices apply to the log that they leave.
void let_wait(std::vector<asked_round>& waiting, const asked_round& q);

/// The trace spans of one answer's sequence, if it is traced. A borrowed sequence serves one answer after another, and
/// has the spans of the present one.
class sequence_trace {
 public:
  /// Takes an answer's round; the first one begins its spans. is_remote: the session is in another process.
  void begin(const std::shared_ptr<trace::tracer>& tracer, environment& env, const trace::span_context& answer,
             bool is_remote);
  /// Records a round: the first one reads the prompt, later ones are events of the sequence's span.
  void note_round(const verified& answer, std::uint32_t prompt_count);
  void end(const failure* why_not = nullptr);

 private:
  struct spans {
    trace::span_context answer;
    trace::open_span sequence;
    trace::open_span prompt;  // until the first round is answered
    std::int64_t rounds = 0, passes = 0, rows = 0, drafted = 0, accepted = 0;
  };
  std::unique_ptr<spans> spans_;
};

/// What the answers to a sequence's rounds need apart from its tokens.
struct sequence_client {
  actor::address session;
  sequence_terms terms;                                // without the grammar's text
  instant heard;                                       // when it last asked
  std::optional<round_id> unacknowledged_first_round;  // its first round, until it is answered or known to be taken
  std::optional<instant> queued_at;                    // when its round was queued, until the first pass
  microseconds queued{0};                              // how long the round waited for that pass
  std::uint32_t prompt_count = 0;
  std::shared_ptr<shared_grammar> grammar;  // null if anything may follow
  std::vector<std::uint32_t> grammar_state;
  draft::mtp_request mtp;
  std::uint64_t evicted_count = 0;
  bool is_scored = false;                  // its round scores the prompt
  sampling::token_counter counts;          // counts of the log's tokens, when a penalty needs them
  tenant_id scope;                         // sequences of one scope share prefixes
  std::variant<verified, prefilled> last;  // the last answer
  std::uint32_t prefix_looks = 0;          // searches for a cached prefix or a leader
  std::vector<asked_round> overtaking;     // rounds that wait, in order, for the pass in flight to end
  sequence_trace trace;
};

/// The clients of all sequences.
class sequence_clients {
 public:
  using map = std::unordered_map<sequence_id, sequence_client>;

  [[nodiscard]] sequence_client* find(sequence_id sequence);
  [[nodiscard]] sequence_client& at(sequence_id sequence) { return all_.at(sequence); }
  [[nodiscard]] sequence_client& open(sequence_id sequence) { return all_[sequence]; }
  void erase(sequence_id sequence) { all_.erase(sequence); }
  [[nodiscard]] map& all() { return all_; }

  /// The round has no terms, and those of its session's earlier rounds are unknown. Another session's terms for the
  /// sequence do not count.
  [[nodiscard]] bool lacks_terms(const asked_round& q);
  /// Keeps a round until the pass in flight ends.
  void let_wait(const asked_round& q);
  /// Takes the rounds that waited, in order for each sequence.
  [[nodiscard]] std::vector<asked_round> take_waiting();
  /// The sequences for which the predicate holds.
  template<class Predicate>
  [[nodiscard]] std::vector<sequence_id> where(Predicate holds) const {
    std::vector<sequence_id> out;
    for (const auto& [sequence, c] : all_) {
      if (holds(sequence, c)) out.push_back(sequence);
    }
    return out;
  }

 private:
  map all_;
  bool some_wait_ = false;
};

}  // namespace redline::actors
