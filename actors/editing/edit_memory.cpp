#include "actors/editing/edit_memory.hpp"

#include <string>

namespace redline::actors {
namespace {

refusal memory_full(const std::string& who, std::size_t most, const std::string& advice) {
  return {.what = refusal::kind::memory_full,
          .why = {errc::queue_full,
                  who + " may hold " + std::to_string(most) +
                      " bytes of files, their tokens and calls that wait (--live-mib), and this call would exceed it; " + advice + "."}};
}

}  // namespace

std::optional<refusal> edit_memory::claim::resize(std::size_t bytes, const edit_limits& limits) {
  if (!of_) return std::nullopt;
  const std::lock_guard lock(of_->guard_);
  const auto own = of_->by_tenant_.find(tenant_);
  const std::size_t tenant_bytes = (own == of_->by_tenant_.end() ? 0 : own->second) - bytes_ + bytes;
  const std::size_t all_bytes = of_->bytes() - bytes_ + bytes;
  if (bytes > bytes_ && (tenant_bytes > limits.tenant_bytes_max || all_bytes > limits.bytes_max)) {
    ++of_->refused_count_;
    if (tenant_bytes > limits.tenant_bytes_max) {
      return memory_full("Your edit sessions together", limits.tenant_bytes_max, "close a session or drop files");
    }
    return memory_full("The edit sessions of this server together", limits.bytes_max,
                       "close a session, drop files, or try again when others have");
  }
  if (tenant_bytes > 0)
    of_->by_tenant_[tenant_] = tenant_bytes;
  else if (own != of_->by_tenant_.end())
    of_->by_tenant_.erase(own);
  of_->bytes_ = all_bytes;
  bytes_ = bytes;
  return std::nullopt;
}

edit_memory::claim::~claim() { resize(0, {}); }

}  // namespace redline::actors
