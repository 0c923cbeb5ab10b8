#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "actors/http/routing/api_keys.hpp"

namespace redline::actors {

/// Owns the keys that a server accepts now. They may be replaced while it runs. Safe from any thread.
class key_ring {
 public:
  explicit key_ring(api_keys keys = {}) { replace(std::move(keys)); }

  /// The keys accepted now, as an immutable snapshot. Never null.
  [[nodiscard]] std::shared_ptr<const api_keys> snapshot() const {
    const std::scoped_lock lock(mutex_);
    return keys_;
  }
  void replace(api_keys keys) {
    auto next = std::make_shared<const api_keys>(std::move(keys));
    const std::scoped_lock lock(mutex_);
    keys_.swap(next);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const api_keys> keys_;
};

}  // namespace redline::actors
