#include "actors/pool/served_model.hpp"

#include <algorithm>

#include "runtime/base/hash.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors {

sampling::sampling_defaults served_model::sampling_of(std::string_view called) const {
  const bool is_known = std::find(aliases.begin(), aliases.end(), called) != aliases.end();
  const auto found = sampling.find(is_known ? called : std::string_view(name));
  return found == sampling.end() ? sampling::sampling_defaults{} : found->second;
}

void served_model::add_names(const std::vector<std::string>& texts) {
  for (const auto& text : texts) {
    auto named = sampling::parse_named_sampling(text);
    if (!named) continue;
    if (named->defaults != sampling::sampling_defaults{}) sampling.emplace(named->name, named->defaults);
    if (named->name != name) aliases.push_back(std::move(named->name));
  }
}

std::string make_fingerprint(std::uint64_t model, numerics_id numerics) {
  const std::uint64_t both = fnv1a().add(to_hex(model)).add(std::to_string(numerics.value)).value();
  return "redline-" + version() + "-" + to_hex(both);
}

}  // namespace redline::actors
