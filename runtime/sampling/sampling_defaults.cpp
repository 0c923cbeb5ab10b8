#include "runtime/sampling/sampling_defaults.hpp"

#include <charconv>

namespace redline::sampling {
namespace {

constexpr const char* wanted =
    "expected NAME or NAME:SETTING=NUMBER,... with temperature, top_p, min_p, top_k, repetition_penalty, "
    "presence_penalty or frequency_penalty";

struct setting {
  std::string_view name;
  std::optional<float> sampling_defaults::*where;
  float least, most;
};
constexpr setting settings[] = {
    {"temperature", &sampling_defaults::temperature, 0, 2},
    {"top_p", &sampling_defaults::top_p, 0, 1},
    {"min_p", &sampling_defaults::min_p, 0, 1},
    {"repetition_penalty", &sampling_defaults::repetition_penalty, 0.01F, 10},
    {"presence_penalty", &sampling_defaults::presence_penalty, -2, 2},
    {"frequency_penalty", &sampling_defaults::frequency_penalty, -2, 2},
};

template<class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

bool set(sampling_defaults& out, std::string_view name, std::string_view value) {
  if (name == "top_k") {
    const auto k = parse_number<std::int32_t>(value);
    if (k && *k >= 0) out.top_k = *k;
    return k && *k >= 0;
  }
  for (const auto& one : settings) {
    if (one.name != name) continue;
    const auto number = parse_number<float>(value);
    if (!number || !(*number >= one.least && *number <= one.most)) return false;
    out.*one.where = *number;
    return true;
  }
  return false;
}

}  // namespace

sampling_params sampling_defaults::over(sampling_params usual) const {
  usual.temperature = temperature.value_or(usual.temperature);
  usual.top_p = top_p.value_or(usual.top_p);
  usual.min_p = min_p.value_or(usual.min_p);
  usual.top_k = top_k.value_or(usual.top_k);
  usual.repetition_penalty = repetition_penalty.value_or(usual.repetition_penalty);
  usual.presence_penalty = presence_penalty.value_or(usual.presence_penalty);
  usual.frequency_penalty = frequency_penalty.value_or(usual.frequency_penalty);
  return usual;
}

result<named_sampling> parse_named_sampling(std::string_view text) {
  named_sampling out{.name = std::string(text), .defaults = {}};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find('=', colon) == std::string_view::npos) return out;
  out.name = text.substr(0, colon);
  for (auto rest = text.substr(colon + 1); !rest.empty();) {
    const auto one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const auto equals = one.find('=');
    if (equals == std::string_view::npos || !set(out.defaults, one.substr(0, equals), one.substr(equals + 1))) {
      return failure{errc::invalid_argument, std::string(wanted) + ", found '" + std::string(one.substr(0, 64)) + "'"};
    }
  }
  if (out.name.empty()) return failure{errc::invalid_argument, std::string(wanted) + ", found no name"};
  return out;
}

}  // namespace redline::sampling
