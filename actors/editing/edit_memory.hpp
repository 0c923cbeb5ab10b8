#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "actors/messages/edit_messages.hpp"
#include "runtime/base/byte_budget.hpp"

namespace redline::actors {

/// The bytes that edit sessions use, per tenant and in total. Safe from any thread.
class edit_memory : public byte_budget {
 public:
  /// One session's share, given back on destruction.
  class claim {
   public:
    claim() = default;  // counted nowhere, and never refused
    claim(std::shared_ptr<edit_memory> of, tenant_id tenant) : held_(std::move(of), tenant) {}

    /// Claims `bytes` instead of the present share; or returns the limit that this breaks, and changes nothing. Less
    /// than before is never refused.
    std::optional<refusal> resize(std::size_t bytes, const edit_limits& limits);

   private:
    byte_budget::claim held_;
  };
};

}  // namespace redline::actors
