#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "runtime/base/ids.hpp"

namespace redline {

/// State learned from each tenant's sessions, separate from that of other tenants. A user of a T owns a reference to
/// it; beyond tenants_max, unreferenced ones are dropped.
template<class T>
class per_tenant {
 public:
  explicit per_tenant(std::size_t tenants_max) : tenants_max_(tenants_max) {}

  /// Never null; makes a new T for an unknown tenant.
  [[nodiscard]] std::shared_ptr<T> of(tenant_id tenant) {
    if (known_.size() >= tenants_max_ && !known_.contains(tenant)) {
      std::erase_if(known_, [](const auto& entry) { return entry.second.use_count() == 1; });
    }
    auto& found = known_[tenant];
    if (!found) found = std::make_shared<T>();
    return found;
  }
  [[nodiscard]] std::size_t count() const { return known_.size(); }

 private:
  std::size_t tenants_max_;
  std::map<tenant_id, std::shared_ptr<T>> known_;
};

}  // namespace redline
