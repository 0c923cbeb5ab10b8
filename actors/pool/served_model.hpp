#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/prompts/prompt_builder.hpp"
#include "actors/serving/answer_factory.hpp"
#include "runtime/sampling/sampling_defaults.hpp"

namespace redline::actors {

/// Everything that a gateway knows about one model. Immutable: a request keeps the version that it began with.
struct served_model {
  std::string name;                  // for clients
  std::vector<std::string> aliases;  // other names that they may use
  std::uint64_t digest = 0;          // digest of the model's file; see gguf::compute_file_digest
  std::string fingerprint;           // for answers whose worker is unknown; see make_fingerprint
  /// For clients, the numerics of all workers that have the model, in words (process_card::numerics); sorted.
  std::vector<std::string> computed_by;
  numerics_id numerics;  // numerics of all its answers; if unknown, each answer's worker decides
  std::shared_ptr<const answer_factory> answers;
  std::shared_ptr<const prompt_builder> prompts;
  draft::draft_options draft_defaults;     // for requests that name no method
  bool has_mtp = false;                    // it has an MTP layer (architecture)
  bool keeps_states = false;               // some layers keep states, which cannot lose tokens (architecture)
  std::vector<std::string> known_phrases;  // only for demonstration models; see known_phrases.hpp
  /// Sampling defaults by the name that a request uses: the model's own, or an alias.
  std::map<std::string, sampling::sampling_defaults, std::less<>> sampling;

  /// The sampling defaults for requests that use this name. An unknown or empty name stands for the model's own.
  [[nodiscard]] sampling::sampling_defaults sampling_of(std::string_view called) const;
  /// Adds names, with sampling defaults where a text has some ("fast:temperature=0"). Malformed ones are skipped.
  void add_names(const std::vector<std::string>& texts);
};

/// OpenAI's system_fingerprint: answers with the same one come from the same version, the same file, and numerics that
/// give the same bits.
std::string make_fingerprint(std::uint64_t model, numerics_id numerics);

}  // namespace redline::actors
