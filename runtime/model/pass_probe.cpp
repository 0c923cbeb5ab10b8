#include "runtime/model/pass_probe.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/kv/page_pool.hpp"
#include "runtime/model/feed_forward.hpp"

namespace redline::model {
namespace {

constexpr std::uint32_t long_context = 1024;

microseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - start);
}

constexpr std::uint32_t all_different = 31;  // stride from each token to the next; with 0 all tokens are the same

/// Tokens of a window table; 0 if there is none.
std::uint32_t seen_tokens(const transformer& t, std::uint32_t rows, std::uint32_t context) {
  return t.size().window_pages == 0 ? 0 : rows + std::min(context, t.size().window - 1);
}

/// Returns the faster of two passes, because the first may find cold caches.
measured_pass measure(transformer& t, std::uint32_t rows, std::uint32_t logits, std::uint32_t context,
                      std::uint32_t stride) {
  std::vector<token> tokens(rows);
  for (std::uint32_t i = 0; i < rows; ++i) tokens[i] = static_cast<token>(i * stride % t.config().vocabulary);
  const kv::piece table[] = {
      {0, context + rows, 0}};  // the context's keys may contain anything: the time does not depend on them
  const kv::piece window_table[] = {{0, seen_tokens(t, rows, context), 0}};
  const run r{.tokens = tokens,
              .first_position = static_cast<position>(context),
              .table = table,
              .logits_begin = rows - logits,
              .window_table = std::span(window_table).first(t.size().window_pages == 0 ? 0 : 1),
              .state = {.begins = false, .kept = rows}};
  measured_pass best{.rows = rows, .logits = logits, .context = context, .took = microseconds::max()};
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t experts = t.experts().experts;
    const auto start = std::chrono::steady_clock::now();
    t.forward({&r, 1});
    best.took = std::min(best.took, since(start));
    best.experts = t.experts().experts - experts;
  }
  return best;
}

}  // namespace

std::vector<measured_pass> measure_passes(transformer& t, microseconds patience) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint32_t room = std::min(t.config().context, t.size().pages * kv::page_tokens);
  const std::uint32_t window_room = t.size().window_pages * kv::page_tokens;
  std::vector<measured_pass> passes;
  const auto add = [&](std::uint32_t rows, std::uint32_t logits, std::uint32_t context,
                       std::uint32_t stride = all_different) {
    if (rows > t.rows_max() || rows + context > room || seen_tokens(t, rows, context) > window_room) return;
    // Twice the rows take at most about twice as long, and each pass runs twice.
    const microseconds last = passes.empty() ? microseconds{0} : passes.back().took;
    if (since(start) + 4 * last > patience && passes.size() > 2) return;
    passes.push_back(measure(t, rows, logits, context, stride));
  };
  for (std::uint32_t rows = 1; rows <= 16; rows *= 2) add(rows, rows, 0);
  // Compared with passes of as many rows, these separate the cost of an expert from that of a row.
  if (t.config().experts != 0) {
    for (const std::uint32_t rows : {4U, 16U}) add(rows, rows, 0, 0);
  }
  for (const std::uint32_t rows : {1U, 16U}) add(rows, rows, long_context);
  for (const std::uint32_t rows : {32U, 64U}) add(rows, rows, 0);
  add(64, 1, 0);
  add(64, 64, long_context);
  for (const std::uint32_t rows : {128U, 256U, 512U}) add(rows, 1, 0);
  return passes;
}

}  // namespace redline::model
