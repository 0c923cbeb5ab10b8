#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prometheus {
struct MetricFamily;
}

namespace redline::actors {

/// What vLLM's metrics say beside numbers.
struct vllm_facts {
  std::string model_name;
  std::int64_t unix_seconds = 0;
};

/// Appends what routers and autoscalers made for vLLM read, under its present and its former names. Each series has
/// the number of one of ours, so that both sides of a fleet decide by the same state.
void append_vllm_metrics(std::vector<prometheus::MetricFamily>& ours, const vllm_facts& facts);

}  // namespace redline::actors
