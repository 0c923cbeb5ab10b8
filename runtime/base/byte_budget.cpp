#include "runtime/base/byte_budget.hpp"

namespace redline {

byte_budget::verdict byte_budget::claim::resize(std::size_t bytes, const limits& at_most) {
  if (!of_) return verdict::granted;
  const std::lock_guard lock(of_->guard_);
  const auto own = of_->by_tenant_.find(tenant_);
  const std::size_t tenant_bytes = (own == of_->by_tenant_.end() ? 0 : own->second) - bytes_ + bytes;
  const std::size_t all_bytes = of_->bytes() - bytes_ + bytes;
  if (bytes > bytes_ && (tenant_bytes > at_most.tenant_bytes_max || all_bytes > at_most.bytes_max)) {
    ++of_->refused_count_;
    return tenant_bytes > at_most.tenant_bytes_max ? verdict::tenant_is_full : verdict::all_is_full;
  }
  if (tenant_bytes > 0)
    of_->by_tenant_[tenant_] = tenant_bytes;
  else if (own != of_->by_tenant_.end())
    of_->by_tenant_.erase(own);
  of_->bytes_ = all_bytes;
  bytes_ = bytes;
  return verdict::granted;
}

}  // namespace redline
