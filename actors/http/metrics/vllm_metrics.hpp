#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prometheus {
struct MetricFamily;
}

namespace redline::actors {

/// What vLLM's metrics contain in addition to numbers.
struct vllm_facts {
  std::string model_name;
  std::int64_t unix_seconds = 0;
};

/// Appends the metrics that routers and autoscalers made for vLLM read, under vLLM's present and former names. Each
/// series repeats the number of one of Redline's, so that both parts of a fleet decide by the same state.
void append_vllm_metrics(std::vector<prometheus::MetricFamily>& ours, const vllm_facts& facts);

}  // namespace redline::actors
