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

/// How far the spans that a program copies are trusted.
enum class copy_trust : std::uint8_t {
  forced,     // the program's word is enough: the span is in the answer
  verified,   // the span is a draft, and ends where the model would have written something else
  automatic,  // forced where the span's anchors match its lines or, without anchors, where the model was sure of the
              // span's numbers; otherwise the span ends where the model finds a token improbable
  last_,
};

/// What a request wants of edit programs.
struct copy_options {
  copy_trust trust = copy_trust::forced;
  bool line_spans = true;
  bool token_spans = false;
  bool anchors = false;  // copies of lines also state how their first and last line begin
  /// For `automatic` without anchors: the least joint probability that the model must give the span's numbers.
  float confidence_min = 0.9F;
  /// For `automatic`: the least probability that the model must give each token of a span that is not forced.
  float probability_min = 0.05F;
  bool operator==(const copy_options&) const = default;
  static constexpr auto fields(auto& self) {
    return std::tie(self.trust, self.line_spans, self.token_spans, self.anchors, self.confidence_min,
                    self.probability_min);
  }
};

/// An answer that is a program over files.
struct copy_spec {
  copy_options options;
  std::vector<std::string> files;
  static constexpr auto fields(auto& self) { return std::tie(self.options, self.files); }
};

/// Everything that decides an answer except what the model reads.
struct answer_terms {
  session_id session;
  tenant_id tenant;
  std::optional<std::uint32_t> tokens_max;  // limit of the answer; if absent, what the context leaves
  std::uint32_t tokens_min = 0;
  std::vector<std::string> stops;
  std::vector<token> stop_tokens;  // end the answer in addition to the model's own
  bool ignore_end = false;         // treats end-of-generation tokens like any others
  sampling::sampling_params sampling;
  draft::draft_options draft;
  std::vector<token> prediction;  // guesses of the answer's tokens: any ids, without effect on the answer
  kv::eviction_options eviction;
  std::optional<std::uint32_t> logprobs;  // number of alternatives wanted per token
  std::optional<copy_spec> copy;
  std::optional<grammar::grammar_text> format;  // the grammar that the answer has to follow
  std::optional<std::string> tools;  // for answers that may call tools: the text of a grammar::tool_constraint
  std::int64_t created_seconds = 0;  // when the client asked, since a template may show the date
  std::string known_text;            // the client's guess of how the answer begins
  std::uint64_t prefix_scope = 0;    // see sequence_terms
  std::uint32_t indent_min = 0;      // a line after the first that is indented by less ends the answer
  std::uint64_t predict_us_max = 0;  // limit after the first token, once the answer has a line; 0 means none
  numerics_id numerics;              // those of the part that the client already has
  bool trace = false;                // each text comes with the origin of its tokens
  std::optional<std::uint32_t> prompt_logprobs;  // number of alternatives wanted per prompt token
  trace::span_context span;                      // the answer's span; empty if it is not traced
  bool shows_control = false;                    // the text includes control tokens, as for answers in channels
  bool is_from_format = false;                   // `prediction` was made from the prompt's format, not by the client
  static constexpr auto fields(auto& self) {
    return std::tie(self.session, self.tenant, self.tokens_max, self.tokens_min, self.stops, self.stop_tokens,
                    self.ignore_end, self.sampling, self.draft, self.prediction, self.eviction, self.logprobs,
                    self.copy, self.format, self.tools, self.created_seconds, self.known_text, self.prefix_scope,
                    self.indent_min, self.predict_us_max, self.numerics, self.trace, self.prompt_logprobs, self.span,
                    self.shows_control, self.is_from_format);
  }
};

/// Why a request is refused.
struct refusal {
  enum class kind : std::uint8_t {
    failure,  // see `why.code`
    no_such_file,
    session_full,  // a limit of the edit session is reached
    bad_grammar,   // the format cannot be turned into a grammar
    memory_full,   // edit sessions use all the bytes allowed, for the tenant or in total
    last_,
  };
  kind what = kind::failure;
  std::string field;  // the request field at fault; empty if there is none
  failure why;
  bool operator==(const refusal&) const = default;
  static constexpr auto fields(auto& self) { return std::tie(self.what, self.field, self.why); }
};

}  // namespace redline::actors
