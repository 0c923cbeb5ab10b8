#include "actors/pool/model_shelf.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/log.hpp"

namespace redline::actors {

std::shared_ptr<const model_catalog> model_shelf::snapshot() const {
  const std::lock_guard lock(mutex_);
  return catalog_;
}

void model_shelf::publish(std::shared_ptr<const served_model> model) {
  const std::lock_guard lock(mutex_);
  models_[model->digest] = std::move(model);
  replace_catalog();
}

bool model_shelf::remove(std::uint64_t digest) {
  const std::lock_guard lock(mutex_);
  if (models_.erase(digest) == 0) return false;
  replace_catalog();
  return true;
}

void model_shelf::replace_catalog() {
  std::vector<model_catalog::entry> all;
  for (const auto& [digest, model] : models_) all.push_back(model);
  auto next = std::make_shared<model_catalog>(std::move(all));
  const auto& known = catalog_->conflicts();
  for (const auto& conflict : next->conflicts()) {
    if (std::find(known.begin(), known.end(), conflict) == known.end())
      log_line(log_level::warning, "models", conflict);
  }
  catalog_ = std::move(next);
}

}  // namespace redline::actors
