#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/sampling/sampling.hpp"

namespace redline::sampling {

/// How tokens are chosen for requests that do not specify it.
struct sampling_defaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<std::int32_t> top_k;

  /// The parameters in `usual`, overridden by these defaults.
  [[nodiscard]] sampling_params over(sampling_params usual) const;
  bool operator==(const sampling_defaults&) const = default;
};

/// A model name for clients, with its sampling defaults.
struct named_sampling {
  std::string name;
  sampling_defaults defaults;
};

/// Parses "NAME", or "NAME:temperature=0,top_p=0.9". A name may contain colons: the text after the last one is settings
/// if it contains an equals sign. Fails for unknown settings and values out of range.
result<named_sampling> parse_named_sampling(std::string_view text);

}  // namespace redline::sampling
