#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/pool/served_model.hpp"

namespace redline::actors {

/// A model that claims its names, and by what right; see model_standing.
struct model_claim {
  std::shared_ptr<const served_model> model;
  bool has_workers = true;
  std::int64_t since = 0;
};

/// The models that a gateway serves, by their names. Immutable.
///
/// A name belongs to one model. Of two that claim one, the model that has workers has it before one that has none, and
/// then the one whose workers were there first, so that what comes later takes no name from what is served, and all
/// gateways of a pool decide alike. Between equals a model's own name goes before another's alias, and the first by
/// name and digest before others. A model that loses its own name is not served, one that loses an alias goes without
/// it.
class model_catalog {
 public:
  using entry = std::shared_ptr<const served_model>;

  explicit model_catalog(std::vector<model_claim> models = {});

  /// By name or alias; an empty name finds the first model. Null: there is none.
  [[nodiscard]] entry find(std::string_view name) const;
  [[nodiscard]] bool empty() const { return models_.empty(); }

  /// A model with the names that it has here.
  struct listing {
    entry model;
    std::vector<std::string> aliases;  // those that are its own, in order
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
