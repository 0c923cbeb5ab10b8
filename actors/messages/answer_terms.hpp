#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "actors/messages/numerics_id.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/result.hpp"
#include "runtime/draft/draft_options.hpp"
#include "runtime/grammar/constraint.hpp"
#include "runtime/kv/eviction.hpp"
#include "runtime/sampling/sampling.hpp"
#include "runtime/trace/span_context.hpp"

namespace redline::actors {

/// How far the spans of a program are believed.
enum class copy_trust : std::uint8_t {
  forced,     // a span is in the answer because the program says so
  verified,   // as far as the model would have written it itself: the span is a draft and ends where it differs
  automatic,  // with anchors: forced where they are those of the span's lines; else: where the model was sure of the
              // span's numbers; verified elsewhere
  last_,
};

/// What a request wants of programs.
struct copy_options {
  copy_trust trust = copy_trust::forced;
  bool line_spans = true;
  bool token_spans = false;
  bool anchors = false;  // copies of lines also say how their first and last line begin
  /// automatic without anchors: of the span's numbers together, by the model's probabilities
  float confidence_min = 0.9F;
  bool operator==(const copy_options&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.trust, self.line_spans, self.token_spans, self.anchors, self.confidence_min);
  }
};

/// An answer that is a program over files.
struct copy_spec {
  copy_options options;
  std::vector<std::string> files;
  static constexpr auto fields(auto& self) { return std::tie(self.options, self.files); }
};

/// All that decides an answer, but what the model reads.
struct answer_terms {
  session_id session;
  tenant_id tenant;
  std::optional<std::uint32_t> tokens_max;  // of the answer; absent: what the context leaves
  std::uint32_t tokens_min = 0;
  std::vector<std::string> stops;
  std::vector<token> stop_tokens;  // that end the answer beside the model's own
  bool ignore_end = false;         // end-of-generation tokens are tokens like others
  sampling::sampling_params sampling;
  draft::draft_options draft;
  std::vector<token> prediction;  // guesses of the answer's tokens: any ids, and of no effect on the answer
  kv::eviction_options eviction;
  std::optional<std::uint32_t> logprobs;  // alternatives wanted per token
  std::optional<copy_spec> copy;
  std::optional<grammar::grammar_text> format;  // what the answer has to follow
  std::optional<std::string> tools;  // what answers that call tools follow: the text of a grammar::tool_constraint
  std::int64_t created_seconds = 0;  // when the client asked: a template may say the date
  std::string known_text;            // how the answer begins, says the client: a guess
  std::uint64_t prefix_scope = 0;    // see sequence_terms
  std::uint32_t indent_min = 0;      // a line after the first that is indented by less ends the answer
  std::uint64_t predict_us_max = 0;  // after the first token, once the answer has a line; 0: any
  numerics_id numerics;              // of the part that the client has already
  bool trace = false;                // say with each text where its tokens came from
  std::optional<std::uint32_t> prompt_logprobs;  // alternatives wanted per token of the prompt
  trace::span_context span;                      // that the answer is; empty: it is not traced
  bool shows_control = false;                    // the text has the control tokens in it, as of answers in channels
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.tenant, self.tokens_max, self.tokens_min, self.stops, self.stop_tokens,
                    self.ignore_end, self.sampling, self.draft, self.prediction, self.eviction, self.logprobs,
                    self.copy, self.format, self.tools, self.created_seconds, self.known_text, self.prefix_scope,
                    self.indent_min, self.predict_us_max, self.numerics, self.trace, self.prompt_logprobs, self.span,
                    self.shows_control);
  }
};

/// Why a request is refused.
struct refusal {
  enum class kind : std::uint8_t {
    failure,  // see `why.code`
    no_such_file,
    session_full,  // a limit of the edit session is reached
    bad_grammar,   // the format cannot be turned into a grammar
    memory_full,   // edit sessions hold as many bytes as they may, the tenant's or all
    last_,
  };
  kind what = kind::failure;
  std::string field;  // of the request, that is at fault; empty: none
  failure why;
  bool operator==(const refusal&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.what, self.field, self.why); }
};

}  // namespace redline::actors
