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

/// Says which of the sequences that run goes first, by a number for each. It cannot allocate, send, sleep or look at a
/// clock. What it does not decide:
/// - which sequences run at all: places go to tenants in equal shares (`admission`);
/// - background work (prefills) comes after everything else, and items of one key as they came: `rank`;
/// - decodes come before prompts in a pass, and a short prompt before a long one (`batch_builder`), whatever their
///   keys; among decodes and among prompts the order is the policy's;
/// - which sequence loses its KV where pages are short (`preemption`).
class policy {
 public:
  virtual ~policy() = default;
  /// Lower goes first.
  [[nodiscard]] virtual std::uint64_t key(const work_item& item) const = 0;
  /// Told before keys are asked for: all that could run now.
  virtual void see(std::span<const work_item> items, instant now) { (void)items, (void)now; }
  /// Told after a batch: the tenant's part of its time.
  virtual void charge(tenant_id tenant, microseconds used) { (void)tenant, (void)used; }
};

/// Fills `best_first` with every index of `items` once: background work last, then by the policy's key, then decodes
/// and verifications before prompts, so that an arriving prompt does not hold up running answers; then by arrival.
/// Decodes that found no room in the last passes go before the others.
void rank(policy& by, std::span<const work_item> items, instant now, std::vector<item_index>& best_first);

/// A policy as it can be chosen.
struct known_policy {
  std::string_view name;
  std::string_view says;  // who goes first; for help texts
  std::unique_ptr<policy> (*make)();
};
std::span<const known_policy> policies();
std::vector<std::string> policy_names();

/// By one of these names.
result<std::unique_ptr<policy>> make_policy(std::string_view name);

}  // namespace redline::scheduler
