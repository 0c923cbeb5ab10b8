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
  trace::span_context span{};  // of the answer
};

/// The spans of one answer's sequence; nothing where it is not traced. A borrowed sequence serves one answer after
/// another, and has the spans of the one at hand.
class sequence_trace {
 public:
  /// An answer's round; begins its spans with its first. is_remote: the session is in another process.
  void begin(const std::shared_ptr<trace::tracer>& tracer, environment& env, const trace::span_context& answer,
             bool is_remote);
  /// The first round reads the prompt; later ones are events of the sequence's span.
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
  sequence_terms terms;              // without the grammar's text
  instant heard;                     // when it last asked
  std::optional<round_id> untold;    // its first round, until it is answered or known to be taken
  std::optional<instant> queued_at;  // the round, until its first pass
  microseconds queued{0};            // then it had waited so long
  std::uint32_t prompt_count = 0;
  std::shared_ptr<shared_grammar> grammar;  // null: anything may follow
  std::vector<std::uint32_t> grammar_state;
  std::uint64_t evicted_count = 0;
  bool is_scored = false;                  // its round scores the prompt
  sampling::token_counter counts;          // of the log, when a penalty needs them
  tenant_id scope;                         // sequences of one scope share prefixes
  std::variant<verified, prefilled> last;  // answer
  std::uint32_t prefix_looks = 0;          // for a known prefix or a leader
  std::vector<asked_round> overtaking;     // wait, in order, for the pass in flight to end
  sequence_trace trace;
};

/// The sessions of all sequences.
class sequence_clients {
 public:
  using map = std::unordered_map<sequence_id, sequence_client>;

  [[nodiscard]] sequence_client* find(sequence_id sequence);
  [[nodiscard]] sequence_client& at(sequence_id sequence) { return all_.at(sequence); }
  [[nodiscard]] sequence_client& open(sequence_id sequence) { return all_[sequence]; }
  void erase(sequence_id sequence) { all_.erase(sequence); }
  [[nodiscard]] map& all() { return all_; }

  /// The round brings no terms, and those of the rounds before are not known: of its session, not of another one that
  /// had the sequence.
  [[nodiscard]] bool lacks_terms(const asked_round& q);
  /// Keeps a round until the pass in flight ends; later ones than those that wait.
  void let_wait(const asked_round& q);
  /// The rounds that waited, in order for each sequence.
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
