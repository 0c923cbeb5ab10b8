#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/messages/target_messages.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors {

/// What passes took when they were last measured, in a file per machine and model. Only saves time: a file that is
/// missing, old or damaged is measured again.
class cost_cache {
 public:
  /// folder: where the files lie, made when needed; empty: nothing is kept. key: everything that the times depend on.
  cost_cache(std::string folder, std::string key);

  [[nodiscard]] std::optional<std::vector<pass_cost>> load() const;
  /// mixture: the model's experts, for who reads the file as a curve (`redline plan`).
  [[nodiscard]] result<void> store(const std::vector<pass_cost>& costs, const cost::mixture_shape& mixture = {}) const;

  /// $REDLINE_CACHE_DIR, else redline/ in $XDG_CACHE_HOME or ~/.cache; empty when there is no such place.
  [[nodiscard]] static std::string usual_folder();

 private:
  [[nodiscard]] std::string path() const;

  std::string folder_;
  std::string key_;
};

}  // namespace redline::actors
