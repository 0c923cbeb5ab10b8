#pragma once

#include <memory>
#include <mutex>

#include "actors/pool/model_catalog.hpp"

namespace redline::actors {

/// Keeps the models that a gateway serves at present; they come and go while it runs. Safe from any thread.
class model_shelf {
 public:
  /// The present catalog, which never changes afterwards.
  [[nodiscard]] std::shared_ptr<const model_catalog> snapshot() const;
  /// Replaces a model with the same digest.
  void publish(std::shared_ptr<const served_model> model);
  /// Returns false when no model has this digest.
  bool remove(std::uint64_t digest);
  /// Sets what the claim of the model with this digest to its names rests on, also if it is published later; see
  /// model_claim. Models without a rank are equal.
  void rank(std::uint64_t digest, bool has_workers, std::int64_t since);

 private:
  void replace_catalog();

  mutable std::mutex mutex_;
  std::map<std::uint64_t, model_claim> models_;  // by digest; the model is null while it is only ranked
  std::shared_ptr<const model_catalog> catalog_ = std::make_shared<model_catalog>();
};

}  // namespace redline::actors
