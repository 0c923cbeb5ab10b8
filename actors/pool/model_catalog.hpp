#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/pool/served_model.hpp"

namespace redline::actors {

/// A model that claims its names, and what the claim rests on; see model_standing.
struct model_claim {
  std::shared_ptr<const served_model> model;
  bool has_workers = true;
  std::int64_t since = 0;
};

/// The models that a gateway serves, by their names. Immutable.
///
/// A name belongs to one model. Of two that claim it, a model with workers comes before one without, and then the one
/// whose workers were there first. So a newcomer takes no name from a model that is served, and all gateways of a pool
/// decide alike. Between equals, a model's own name comes before another's alias, and then the lower name and digest. A
/// model that loses its own name is not served; one that loses an alias goes without it.
class model_catalog {
 public:
  using entry = std::shared_ptr<const served_model>;

  explicit model_catalog(std::vector<model_claim> models = {});

  /// Finds a model by name or alias; an empty name finds the first model. Null if there is none.
  [[nodiscard]] entry find(std::string_view name) const;
  [[nodiscard]] bool empty() const { return models_.empty(); }

  /// A model with the names that it has here.
  struct listing {
    entry model;
    std::vector<std::string> aliases;  // those that it was granted, in order
  };
  /// In the order of their names.
  [[nodiscard]] const std::vector<listing>& models() const { return models_; }
  /// The claims that were not granted, each as a sentence.
  [[nodiscard]] const std::vector<std::string>& conflicts() const { return conflicts_; }

 private:
  std::vector<listing> models_;
  std::map<std::string, entry, std::less<>> by_name_;
  std::vector<std::string> conflicts_;
};

}  // namespace redline::actors
