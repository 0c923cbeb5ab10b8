#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/messages/target_messages.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors {

/// The times of measured passes, in a file per machine and model. The cache only saves time: a file that is missing,
/// old or damaged is replaced by a new measurement.
class cost_cache {
 public:
  /// folder: of the files, created when needed; empty to store nothing. key: everything that the times depend on.
  cost_cache(std::string folder, std::string key);

  [[nodiscard]] std::optional<std::vector<pass_cost>> load() const;
  /// mixture: the model's experts, for `redline plan`, which reads the file as a curve.
  [[nodiscard]] result<void> store(const std::vector<pass_cost>& costs, const cost::mixture_shape& mixture = {}) const;

  /// $REDLINE_CACHE_DIR, else redline/ in $XDG_CACHE_HOME or ~/.cache; empty if none is set.
  [[nodiscard]] static std::string usual_folder();

 private:
  [[nodiscard]] std::string path() const;

  std::string folder_;
  std::string key_;
};

}  // namespace redline::actors
