#include "scheduler/policy.hpp"

#include "scheduler/policies/fair_share.hpp"
#include "scheduler/policies/fifo.hpp"

namespace redline::scheduler {

result<std::unique_ptr<policy>> make_policy(std::string_view name) {
  if (name == "fifo") return std::unique_ptr<policy>(std::make_unique<fifo>());
  if (name == "fair_share") return std::unique_ptr<policy>(std::make_unique<fair_share>());
  return failure{errc::invalid_argument, "expected a policy fifo or fair_share, found '" + std::string(name) + "'"};
}

}  // namespace redline::scheduler
