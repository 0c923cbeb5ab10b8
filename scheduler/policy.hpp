#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "scheduler/work_item.hpp"

namespace redline::scheduler {

/// Orders the running sequences by a number for each. It cannot allocate, send, sleep or look at a clock. It does not
/// decide:
/// - which sequences run at all: slots go to tenants in equal shares (`admission`);
/// - the order of background work (prefills), which comes last, and of items with equal keys (both `rank`);
/// - whether decodes precede prompts, and short prompts long ones (`batch_builder`): only the order among decodes and
///   among prompts is the policy's;
/// - which sequence loses its KV when pages are short (`preemption`).
class policy {
 public:
  virtual ~policy() = default;
  /// Lower goes first.
  [[nodiscard]] virtual std::uint64_t key(const work_item& item) const = 0;
  /// Called before `key` with everything that could run now.
  virtual void see(std::span<const work_item> items, instant now) { (void)items, (void)now; }
  /// Called after a batch with the tenant's part of its time.
  virtual void charge(tenant_id tenant, microseconds used) { (void)tenant, (void)used; }
};

/// Fills `best_first` with every index of `items` once: background work last, then by the policy's key, then decodes
/// and verifications before prompts, so that an arriving prompt does not delay running answers, then by arrival.
/// Decodes that did not fit in the last passes go before the others.
void rank(policy& by, std::span<const work_item> items, instant now, std::vector<item_index>& best_first);

/// A policy as a user can choose it.
struct known_policy {
  std::string_view name;
  std::string_view says;  // what goes first; for help texts
  std::unique_ptr<policy> (*make)();
};
std::span<const known_policy> policies();
std::vector<std::string> policy_names();

/// Makes the policy with one of these names.
result<std::unique_ptr<policy>> make_policy(std::string_view name);

}  // namespace redline::scheduler
