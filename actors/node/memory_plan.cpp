#include "actors/node/memory_plan.hpp"

#include <algorithm>
#include <cstdio>

namespace redline::actors {
namespace {

// For everything else: the program itself, and what sessions store.
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
  const std::string help = weights_fit ? "limit keys and values to " + std::to_string(room >> 20) + " MiB (--kv-mib)"
                                       : "use a file with fewer bits per weight or a smaller model";
  return failure{errc::invalid_argument, model + ": expected a model that fits into the " + gib(limit_bytes) +
                                             " that this process may use, found weights of " + gib(weights_bytes) +
                                             ", keys and values of " + gib(kv_bytes) + " and buffers of " +
                                             gib(buffers_bytes) + ": " + help + ", or raise the limit"};
}

namespace {

/// The states of recurrent layers, in half of the memory: two thirds of that are for sequences, unless they need less.
kv::pool_size choose_states(const architecture::model_shape& config, const pool_request& request) {
  constexpr std::uint32_t drafts_max = 32, copies_max = 32;
  kv::pool_size size(0);
  size.state_records = std::clamp<std::uint32_t>(request.rows_max, 2, drafts_max + 1);
  const std::uint64_t slot = model::state_bytes(config, size.state_records), copy = model::state_bytes(config, 0);
  const std::uint64_t bytes = request.bytes_max / 2;
  const std::uint64_t sequences = std::max(request.sequences_max, 1U);
  size.state_slots = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes / 3 * 2 / slot, 1, sequences));
  const std::uint64_t rest = bytes - std::min(bytes, size.state_slots * slot);
  size.state_copies = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(rest / copy, 1, copies_max));
  return size;
}

}  // namespace

kv::pool_size choose_pool(const architecture::model_shape& config, model::kv_type type, const pool_request& request) {
  if (config.has_states()) {
    const kv::pool_size states = choose_states(config, request);
    architecture::model_shape without = config;
    without.delta.reset();
    without.convolution_taps = 0;
    pool_request rest = request;
    rest.bytes_max -= std::min(rest.bytes_max, model::storage_bytes(config, type, states));
    kv::pool_size all = choose_pool(without, type, rest);
    all.state_slots = states.state_slots;
    all.state_copies = states.state_copies;
    all.state_records = states.state_records;
    return all;
  }
  constexpr std::uint64_t pages_max = 1U << 24;
  const auto pages_for = [](std::uint64_t tokens) { return (tokens + kv::page_tokens - 1) / kv::page_tokens; };
  const std::uint64_t all_bytes = model::page_bytes(config, type);
  const std::uint64_t window_bytes = model::window_page_bytes(config, type);
  const std::uint64_t full_bytes = all_bytes - window_bytes;
  const std::uint64_t longest = pages_for(request.tokens_max);
  const std::uint64_t wanted = longest * request.sequences_max;
  const auto pages = [&](std::uint64_t bytes, std::uint64_t each) {
    const std::uint64_t affordable = each == 0 ? wanted : bytes / each;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::min(wanted, affordable), 1, pages_max));
  };
  const std::uint32_t window = model::window_of(config);
  // What a sequence keeps when it goes on (window_pages::first_held), a pass, and two partly filled pages.
  const std::uint64_t held = pages_for(window + kv::page_tokens + std::uint64_t{request.rows_max}) + 2;
  if (window == 0 || held >= longest || held * all_bytes > request.bytes_max)
    return pages(request.bytes_max, all_bytes);
  const auto needs = [&](std::uint64_t count) {
    return count * held * window_bytes + std::max(longest, count * held) * full_bytes;
  };
  std::uint64_t count = 1;
  while (count < request.sequences_max && needs(count + 1) <= request.bytes_max) ++count;
  const std::uint64_t windows = count * held;
  return {pages(request.bytes_max - windows * window_bytes, full_bytes), static_cast<std::uint32_t>(windows), window};
}

}  // namespace redline::actors
