#include "actors/node/memory_plan.hpp"

#include <cstdio>

namespace redline::actors {
namespace {

// For everything else: the program, what sessions hold.
constexpr std::uint64_t spare_bytes = std::uint64_t{64} << 20;

std::string gib(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1ULL << 30));
  return text;
}

}  // namespace

std::string memory_plan::describe() const {
  return "weights " + gib(weights_bytes) + ", keys and values " + gib(kv_bytes) + ", buffers " + gib(buffers_bytes) +
         ", of " + gib(limit_bytes);
}

result<void> memory_plan::check(const std::string& model) const {
  const std::uint64_t fixed_bytes = weights_bytes + buffers_bytes + spare_bytes;
  if (limit_bytes == 0 || fixed_bytes + kv_bytes <= limit_bytes) return {};
  const bool weights_fit = fixed_bytes < limit_bytes;
  const std::uint64_t room = limit_bytes - (weights_fit ? fixed_bytes : 0);
  const std::string help = weights_fit
                               ? "give keys and values at most " + std::to_string(room >> 20) + " MiB (--kv-mib)"
                               : "take a file of fewer bits a weight or a smaller model";
  return failure{errc::invalid_argument, model + ": expected a model that fits into the " + gib(limit_bytes) +
                                             " which this process may use, found weights of " + gib(weights_bytes) +
                                             ", keys and values of " + gib(kv_bytes) + " and buffers of " +
                                             gib(buffers_bytes) + ": " + help + ", or raise the limit"};
}

}  // namespace redline::actors
