#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/pool/served_model.hpp"

namespace redline::actors {

/// The models that a gateway serves, by their names. Immutable.
///
/// A name belongs to one model. Of two that claim one, the first by name and then by digest has it, whatever came first
/// in time, so that all gateways of a pool decide alike; and a model's own name goes before another's alias. A model
/// that loses its own name is not served, one that loses an alias goes without it.
class model_catalog {
 public:
  using entry = std::shared_ptr<const served_model>;

  explicit model_catalog(std::vector<entry> models = {});

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
