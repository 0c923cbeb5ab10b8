#include "actors/http/metrics/vllm_metrics.hpp"

#include <prometheus/metric_family.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/kv/page_pool.hpp"

namespace redline::actors {
namespace {

using prometheus::ClientMetric, prometheus::MetricFamily, prometheus::MetricType;
using label_list = std::vector<ClientMetric::Label>;

struct alias {
  std::string_view ours;  // without "redline_"
  std::string_view theirs;
};
/// Each alias sums over the labels of Redline's metric.
constexpr alias aliases[] = {
    {"requests_running", "num_requests_running"},
    {"requests_waiting", "num_requests_waiting"},
    {"prompt_tokens_total", "prompt_tokens_total"},
    {"generation_tokens_total", "generation_tokens_total"},
    {"queried_prompt_tokens_total", "prefix_cache_queries_total"},
    {"queried_prompt_tokens_total", "gpu_prefix_cache_queries_total"},
    {"cached_prompt_tokens_total", "prefix_cache_hits_total"},
    {"cached_prompt_tokens_total", "gpu_prefix_cache_hits_total"},
    {"preempted_total", "num_preemptions_total"},
    {"spec_drafted_total", "spec_decode_num_draft_tokens_total"},
    {"spec_accepted_total", "spec_decode_num_accepted_tokens_total"},
    {"time_to_first_token_seconds", "time_to_first_token_seconds"},
    {"request_seconds", "e2e_request_latency_seconds"},
    {"inter_token_seconds", "inter_token_latency_seconds"},
    {"queue_seconds", "request_queue_time_seconds"},
    {"request_prompt_tokens", "request_prompt_tokens"},
    {"request_generation_tokens", "request_generation_tokens"},
};
constexpr std::string_view usage_names[] = {"kv_cache_usage_perc", "gpu_cache_usage_perc"};

class vllm_writer {
 public:
  vllm_writer(std::vector<MetricFamily>& all, const vllm_facts& facts)
      : all_(all), labels_{{"engine", "0"}, {"model_name", facts.model_name}} {}

  void repeat(const alias& a) {
    const MetricFamily* from = find(a.ours);
    if (from == nullptr || from->metric.empty()) return;
    ClientMetric sum = from->metric.front();
    for (std::size_t i = 1; i < from->metric.size(); ++i) {
      sum.gauge.value += from->metric[i].gauge.value;
      sum.counter.value += from->metric[i].counter.value;
    }
    sum.label = labels_;
    add(a.theirs, from->help, from->type, {std::move(sum)});
  }
  void add_usage() {
    const double share = value_of("kv_usage_ratio");
    for (const auto name : usage_names) {
      add(name, "Share of the KV pages in use, from 0 to 1", MetricType::Gauge, {gauge({}, share)});
    }
  }
  void add_successes() {
    const MetricFamily* from = find("requests_total");
    if (from == nullptr) return;
    std::vector<ClientMetric> by_reason;
    for (const auto& one : from->metric) {
      const auto& reason = one.label.front().value;
      if (reason == "error") continue;  // not a success
      by_reason.push_back(one);
      by_reason.back().label = labels_;
      by_reason.back().label.insert(by_reason.back().label.begin() + 1, {"finished_reason", reason});
    }
    add("request_success_total", from->help, MetricType::Counter, std::move(by_reason));
  }
  void add_config() {
    const auto pages = static_cast<std::uint64_t>(value_of("kv_pages"));
    const label_list config{{"block_size", std::to_string(kv::page_tokens)},
                            {"enable_prefix_caching", "True"},
                            {"num_gpu_blocks", std::to_string(pages)}};
    add("cache_config_info", "KV pages of the target model: tokens per page and number of pages", MetricType::Gauge,
        {gauge(config, 1)});
  }
  void add_adapters(std::int64_t unix_seconds) {
    const label_list none{{"max_lora", "0"}, {"running_lora_adapters", ""}, {"waiting_lora_adapters", ""}};
    add("lora_requests_info", "LoRA adapters, which are not supported; the value is the Unix time", MetricType::Gauge,
        {gauge(none, static_cast<double>(unix_seconds))});
  }

 private:
  [[nodiscard]] const MetricFamily* find(std::string_view name) const {
    const auto at = std::find_if(all_.begin(), all_.end(), [&](const MetricFamily& f) {
      return f.name.starts_with("redline_") && std::string_view(f.name).substr(8) == name;
    });
    return at == all_.end() ? nullptr : &*at;
  }
  [[nodiscard]] double value_of(std::string_view name) const {
    const auto* from = find(name);
    return from == nullptr || from->metric.empty() ? 0 : from->metric.front().gauge.value;
  }
  [[nodiscard]] ClientMetric gauge(label_list more, double value) const {
    ClientMetric one;
    one.label = labels_;
    one.label.insert(one.label.end(), more.begin(), more.end());
    one.gauge.value = value;
    return one;
  }
  void add(std::string_view name, const std::string& help, MetricType type, std::vector<ClientMetric> metrics) {
    all_.push_back({"vllm:" + std::string(name), help, type, std::move(metrics)});
  }

  std::vector<MetricFamily>& all_;
  const label_list labels_;
};

}  // namespace

void append_vllm_metrics(std::vector<prometheus::MetricFamily>& ours, const vllm_facts& facts) {
  ours.reserve(ours.size() + std::size(aliases) + 8);  // keeps the entries that the writer reads from moving
  vllm_writer out(ours, facts);
  for (const auto& one : aliases) out.repeat(one);
  out.add_usage();
  out.add_successes();
  out.add_config();
  out.add_adapters(facts.unix_seconds);
}

}  // namespace redline::actors
