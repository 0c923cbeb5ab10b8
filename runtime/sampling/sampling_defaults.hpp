#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/sampling/sampling.hpp"

namespace redline::sampling {

/// How tokens are chosen for requests that say nothing of it.
struct sampling_defaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<std::int32_t> top_k;

  /// Over what is usual.
  [[nodiscard]] sampling_params over(sampling_params usual) const;
  bool operator==(const sampling_defaults&) const = default;
};

/// A name for clients, and how those who use it want their tokens.
struct named_sampling {
  std::string name;
  sampling_defaults defaults;
};

/// "NAME", or "NAME:temperature=0,top_p=0.9". A name may hold colons: what follows the last one are settings when it
/// has an equals sign. Fails for unknown settings and values out of range.
result<named_sampling> parse_named_sampling(std::string_view text);

}  // namespace redline::sampling
