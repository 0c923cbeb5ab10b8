#include "actors/pool/model_catalog.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/base/hex.hpp"

namespace redline::actors {

model_catalog::model_catalog(std::vector<entry> models) {
  std::sort(models.begin(), models.end(),
            [](const entry& a, const entry& b) { return std::tie(a->name, a->digest) < std::tie(b->name, b->digest); });
  for (entry& one : models) {
    const auto [at, is_first] = by_name_.emplace(one->name, one);
    if (is_first) {
      models_.push_back({std::move(one), {}});
    } else {
      conflicts_.push_back("model '" + one->name + "' with digest " + to_hex(one->digest) +
                           " is not served: the model with digest " + to_hex(at->second->digest) +
                           " has this name; give one of them another name");
    }
  }
  for (listing& one : models_) {
    const std::set<std::string> wanted(one.model->aliases.begin(), one.model->aliases.end());
    for (const std::string& alias : wanted) {
      if (alias.empty()) continue;  // stands for the first model
      const auto [at, is_free] = by_name_.emplace(alias, one.model);
      if (is_free) {
        one.aliases.push_back(alias);
      } else if (at->second != one.model) {
        conflicts_.push_back("model '" + one.model->name + "' goes without the alias '" + alias + "': it stands for '" +
                             at->second->name + "'");
      }
    }
  }
}

model_catalog::entry model_catalog::find(std::string_view name) const {
  if (name.empty()) return models_.empty() ? nullptr : models_.front().model;
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

}  // namespace redline::actors
