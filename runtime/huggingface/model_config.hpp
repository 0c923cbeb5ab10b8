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

/// Llama 3.1's extension of the context: slow rotations are slowed down by `factor`, fast ones keep their speed, and
/// those in between are interpolated.
struct llama3_scaling {
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 1;
  double original_context = 1;  // tokens

  bool operator==(const llama3_scaling&) const = default;
};

/// The parameters of YaRN, see architecture::yarn_scaling.
struct yarn_scaling {
  double factor = 1;
  double original_context = 1;  // tokens
  double turns_kept = 32;
  double turns_slowed = 1;
  double attention_factor = 0;  // for queries and keys; 0 means that it follows from the factor
  double log_multiplier = 0;    // m of architecture::yarn_growth; 0 means none

  bool operator==(const yarn_scaling&) const = default;
};

/// LongRoPE's frequency divisors, one for each rotated pair.
struct long_rope {
  std::vector<float> long_factors;
  std::vector<float> short_factors;
};

/// What a Hugging Face config.json says about a decoder that Redline runs.
struct model_config {
  bool is_wrapped = false;  // the text part of a vision model: see text_name
  architecture::model_shape shape;
  double linear_factor = 1;  // positions are divided by it
  double rotated_share = 1;  // of the pairs of a head in layers that see all tokens (Gemma 4)
  std::optional<llama3_scaling> llama3;
  std::optional<yarn_scaling> yarn;
  std::optional<long_rope> factors;
};

/// Reads the architectures named in the rows of families, such as LlamaForCausalLM, and the text part ("text_config")
/// of vision models such as Gemma3ForConditionalGeneration. In families whose files do not say which layers have a
/// sliding window, one shorter than the context limits the context. Failures name file and field: what is missing or
/// not valid for a decoder (file_malformed, invalid_argument), and what would change the arithmetic in an unsupported
/// way (unsupported_format), such as other position scaling, other activations, or weights that are already quantized.
result<model_config> read_model_config(const json_object& config);

/// The name that a wrapped model's tensor would have if the text part were alone: "language_model.model.norm.weight"
/// becomes "model.norm.weight". nullopt if it belongs to the vision part.
std::optional<std::string> text_name(std::string_view tensor);

/// The divisor of each pair's frequency, as in tensor "rope_freqs.weight": head_dim / 2 numbers; empty for no scaling
/// or linear scaling. Pairs that do not turn have 1e30.
std::vector<float> rope_divisors(const model_config& config);

}  // namespace redline::huggingface
