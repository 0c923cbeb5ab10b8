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

/// All that a gateway knows of one model. Immutable: requests that have begun keep the one that they found.
struct served_model {
  std::string name;                  // for clients
  std::vector<std::string> aliases;  // other names that they may use
  std::uint64_t digest = 0;          // of the model's file; see gguf::compute_file_digest
  std::string fingerprint;           // see make_fingerprint; of answers whose worker is not known
  /// In words (process_card::numerics) the numerics of all workers that have it, for clients; sorted.
  std::vector<std::string> computed_by;
  numerics_id numerics;  // of all its answers; not known: each answer's worker decides
  std::shared_ptr<const answer_factory> answers;
  std::shared_ptr<const prompt_builder> prompts;
  draft::draft_options draft_defaults;     // for requests that name no method
  std::vector<std::string> known_phrases;  // of a demonstration model; see known_phrases.hpp
  /// By the name that a request uses: its own, or an alias.
  std::map<std::string, sampling::sampling_defaults, std::less<>> sampling;

  /// What those want who call it by this name; by one that it does not know, or none: who call it by its own.
  [[nodiscard]] sampling::sampling_defaults sampling_of(std::string_view called) const;
  /// Takes further names, with their sampling where they have some ("fast:temperature=0"); those that are not well
  /// formed stay out.
  void add_names(const std::vector<std::string>& texts);
};

/// What OpenAI calls system_fingerprint: answers with the same one come from the same version, the same file, and
/// numerics that give the same bits.
std::string make_fingerprint(std::uint64_t model, numerics_id numerics);

}  // namespace redline::actors
