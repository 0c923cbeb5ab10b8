#pragma once

#include <memory>
#include <mutex>

#include "actors/pool/model_catalog.hpp"

namespace redline::actors {

/// Holds the models that a gateway serves now; models come and go while it runs. Safe from any thread.
class model_shelf {
 public:
  /// What there is now, and stays as it is.
  [[nodiscard]] std::shared_ptr<const model_catalog> snapshot() const;
  /// Takes the place of a model with the same digest.
  void publish(std::shared_ptr<const served_model> model);
  /// False when no model has this digest.
  bool remove(std::uint64_t digest);
  /// By what right the model with this digest has its names, also if it is published later; see model_claim. Without
  /// this all models are equal.
  void rank(std::uint64_t digest, bool has_workers, std::int64_t since);

 private:
  void replace_catalog();

  mutable std::mutex mutex_;
  std::map<std::uint64_t, model_claim> models_;  // by digest; null while it is only ranked
  std::shared_ptr<const model_catalog> catalog_ = std::make_shared<model_catalog>();
};

}  // namespace redline::actors
