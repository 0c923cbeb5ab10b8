#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "runtime/base/ids.hpp"

namespace redline {

/// What was learned of each tenant's sessions, apart from the other tenants'. Who uses a T holds it; beyond tenants_max
/// those without a holder are forgotten.
template<class T>
class per_tenant {
 public:
  explicit per_tenant(std::size_t tenants_max) : tenants_max_(tenants_max) {}

  /// Never null; a new T for a tenant that is not known.
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
