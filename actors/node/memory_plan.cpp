#include "actors/node/memory_plan.hpp"

#include <cstdio>

namespace redline::actors {
namespace {

// For everything else: the program, activations, logits, what sessions hold.
constexpr std::uint64_t spare_bytes = std::uint64_t{64} << 20;

std::string gib(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1ULL << 30));
  return text;
}

}  // namespace

std::string memory_plan::describe() const {
  return "weights " + gib(weights_bytes) + ", keys and values " + gib(kv_bytes) + ", of " + gib(limit_bytes);
}

result<void> memory_plan::check(const std::string& model) const {
  if (limit_bytes == 0 || weights_bytes + kv_bytes + spare_bytes <= limit_bytes) return {};
  const bool weights_fit = weights_bytes + spare_bytes < limit_bytes;
  const std::uint64_t room = limit_bytes - (weights_fit ? weights_bytes + spare_bytes : 0);
  const std::string help = weights_fit
                               ? "give keys and values at most " + std::to_string(room >> 20) + " MiB (--kv-mib)"
                               : "take a file of fewer bits a weight or a smaller model";
  return failure{errc::invalid_argument, model + ": expected a model that fits into the " + gib(limit_bytes) +
                                             " which this process may use, found weights of " + gib(weights_bytes) +
                                             " and keys and values of " + gib(kv_bytes) + ": " + help +
                                             ", or raise the limit"};
}

}  // namespace redline::actors
