#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/architecture/model_shape.hpp"
#include "runtime/base/result.hpp"
#include "runtime/huggingface/json_object.hpp"

namespace redline::huggingface {

/// Llama 3.1's way to a longer context: slow rotations are slowed down by `factor`, fast ones are kept, those between
/// get something between.
struct llama3_scaling {
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 1;
  double original_context = 1;  // tokens

  bool operator==(const llama3_scaling&) const = default;
};

/// YaRN's, see architecture::yarn_scaling.
struct yarn_scaling {
  double factor = 1;
  double original_context = 1;  // tokens
  double turns_kept = 32;
  double turns_slowed = 1;
  double attention_factor = 0;  // of queries and keys; 0: what follows from the factor
  double log_multiplier = 0;    // m of architecture::yarn_growth; 0: none

  bool operator==(const yarn_scaling&) const = default;
};

/// LongRoPE's divisors of frequencies, one for each rotated pair.
struct long_rope {
  std::vector<float> long_factors;
  std::vector<float> short_factors;
};

/// What a Hugging Face config.json says of a decoder that Redline runs.
struct model_config {
  bool is_wrapped = false;  // by a model that sees as well: see text_name
  architecture::model_shape shape;
  double linear_factor = 1;  // positions are divided by it
  std::optional<llama3_scaling> llama3;
  std::optional<yarn_scaling> yarn;
  std::optional<long_rope> factors;
};

/// Takes the architectures that rows of families name, LlamaForCausalLM and so on, and of models that see as
/// well (Gemma3ForConditionalGeneration) the part that reads and writes text: what "text_config" says. In families
/// whose files do not say which layers have a sliding window, one shorter than the context ends the context. Refuses,
/// naming file and field, what is missing or no number of a decoder (file_malformed, invalid_argument) and what would
/// change the arithmetic in a way that Redline does not follow (unsupported_format): other ways to scale positions,
/// other activations, weights quantised already.
result<model_config> read_model_config(const json_object& config);

/// What a tensor of a wrapped model would be called if its text part were alone: "language_model.model.norm.weight" is
/// "model.norm.weight"; nullopt: it belongs to the part that sees.
std::optional<std::string> text_name(std::string_view tensor);

/// By what each pair's frequency is to be divided, as tensor "rope_freqs.weight" holds it: head_dim / 2 numbers; empty
/// for no scaling or a linear one.
std::vector<float> rope_divisors(const model_config& config);

}  // namespace redline::huggingface
