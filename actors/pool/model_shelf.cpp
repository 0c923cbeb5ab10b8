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
  auto& claim = models_[model->digest];
  claim.model = std::move(model);
  replace_catalog();
}

void model_shelf::rank(std::uint64_t digest, bool has_workers, std::int64_t since) {
  const std::lock_guard lock(mutex_);
  auto& claim = models_[digest];
  claim.has_workers = has_workers;
  claim.since = since;
  if (claim.model) replace_catalog();
}

bool model_shelf::remove(std::uint64_t digest) {
  const std::lock_guard lock(mutex_);
  const auto gone = models_.extract(digest);
  if (gone.empty() || !gone.mapped().model) return false;
  replace_catalog();
  return true;
}

void model_shelf::replace_catalog() {
  std::vector<model_claim> all;
  for (const auto& [digest, claim] : models_) {
    if (claim.model) all.push_back(claim);
  }
  auto next = std::make_shared<model_catalog>(std::move(all));
  const auto& known = catalog_->conflicts();
  for (const auto& conflict : next->conflicts()) {
    if (std::find(known.begin(), known.end(), conflict) == known.end())
      log_line(log_level::warning, "models", conflict);
  }
  catalog_ = std::move(next);
}

}  // namespace redline::actors
