#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "actors/messages/edit_messages.hpp"
#include "runtime/base/byte_budget.hpp"

namespace redline::actors {

/// The bytes that edit sessions hold, of each tenant and of all. Any thread may ask.
class edit_memory : public byte_budget {
 public:
  /// One session's part, given back when this dies.
  class claim {
   public:
    claim() = default;  // counted nowhere, and never refused
    claim(std::shared_ptr<edit_memory> of, tenant_id tenant) : held_(std::move(of), tenant) {}

    /// From now on `bytes` in place of what was held; or says which limit that breaks, and changes nothing. Less than
    /// before is never refused.
    std::optional<refusal> resize(std::size_t bytes, const edit_limits& limits);

   private:
    byte_budget::claim held_;
  };
};

}  // namespace redline::actors
