#include "actors/pool/model_catalog.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/base/hex.hpp"

namespace redline::actors {
namespace {

/// A model's claim to one name.
struct name_claim {
  const model_claim* of = nullptr;
  bool is_alias = false;
  std::string name;

  /// The claim with the lowest rank gets the name.
  [[nodiscard]] auto rank() const {
    return std::tuple(!of->has_workers, of->since, is_alias, std::string_view(of->model->name), of->model->digest,
                      std::string_view(name));
  }
};

std::vector<name_claim> all_claims(const std::vector<model_claim>& models) {
  std::vector<name_claim> out;
  for (const model_claim& one : models) {
    out.push_back({&one, false, one.model->name});
    const std::set<std::string> aliases(one.model->aliases.begin(), one.model->aliases.end());
    for (const std::string& alias : aliases) {
      if (!alias.empty()) out.push_back({&one, true, alias});  // the empty name means the first model
    }
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
  return out;
}

}  // namespace

model_catalog::model_catalog(std::vector<model_claim> models) {
  // A model's own name comes before its aliases.
  for (const name_claim& claim : all_claims(models)) {
    const entry& model = claim.of->model;
    const auto served = std::find_if(models_.begin(), models_.end(), [&](const auto& m) { return m.model == model; });
    if (claim.is_alias && served == models_.end()) continue;
    const auto [at, is_free] = by_name_.emplace(claim.name, model);
    if (is_free && claim.is_alias) {
      served->aliases.push_back(claim.name);
    } else if (is_free) {
      models_.push_back({model, {}});
    } else if (!claim.of->has_workers) {
      // The model was served under this name until its workers left, so there is nothing to report.
    } else if (!claim.is_alias) {
      conflicts_.push_back("model '" + model->name + "' with digest " + to_hex(model->digest) +
                           " is not served: the model with digest " + to_hex(at->second->digest) +
                           " has this name until its workers are gone");
    } else if (at->second != model) {
      conflicts_.push_back("model '" + model->name + "' does not get the alias '" + claim.name +
                           "', which belongs to '" + at->second->name + "'");
    }
  }
  std::sort(models_.begin(), models_.end(),
            [](const listing& a, const listing& b) { return a.model->name < b.model->name; });
}

model_catalog::entry model_catalog::find(std::string_view name) const {
  if (name.empty()) return models_.empty() ? nullptr : models_.front().model;
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

}  // namespace redline::actors
