// redline bench forward: the cost of one forward pass as a function of its rows and of the context before them.

#include "bench/studies/passes/bench_forward.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/forward_probe.hpp"
#include "actors/cli/progress_line.hpp"
#include "bench/studies/common/json_file.hpp"
#include "runtime/model/numerics.hpp"

namespace redline::studies {
namespace {

nlohmann::ordered_json json_of(const model::transformer::times& t) {
  return {{"prepare", t.prepare * 1e3}, {"query_key_value", t.query_key_value * 1e3},
          {"store", t.store * 1e3},     {"attention", t.attention * 1e3},
          {"output", t.output * 1e3},   {"feed_forward", t.feed_forward * 1e3},
          {"norms", t.norms * 1e3},     {"head", t.head * 1e3}};
}

void print_table(const std::vector<forward_cell>& cells, const kernels::machine_bounds& bounds,
                 const model::model_config& config, bool profile) {
  const std::uint32_t mixtures = config.mixture_layers();
  std::printf("%6s %8s %10s %10s %12s %14s %14s%s\n", "rows", "context", "best ms", "median ms", "tokens/s",
              "of read bound", "of flop bound", mixtures == 0 ? "" : "  experts of a layer");
  for (const forward_cell& c : cells) {
    std::printf("%6u %8u %10.2f %10.2f %12.1f %13.0f%% %13.0f%%", c.rows, c.context, c.best_ms, c.median_ms,
                c.rows / (c.best_ms / 1e3), 100 * c.of_read_bound(bounds), 100 * c.of_flop_bound(bounds));
    if (mixtures != 0) std::printf(" %12.1f of %3u", c.experts / mixtures, config.experts);
    std::printf("\n");
    if (!profile) continue;
    const nlohmann::ordered_json parts = json_of(c.spent);
    for (const auto& [name, ms] : parts.items()) {
      std::printf("%16s %-16s %8.3f ms\n", "", name.c_str(), ms.get<double>());
    }
  }
}

nlohmann::ordered_json json_of(const forward_options& f, const kernels::kernel_table& table, unsigned threads,
                               const kernels::machine_bounds& bounds, const model::model_config& config,
                               const std::vector<forward_cell>& cells) {
  nlohmann::ordered_json out = {{"benchmark", "forward"},
                                {"model", f.model},
                                {"target", table.name},
                                {"threads", threads},
                                {"numerics", model::name_of_products(table)},
                                {"kv", f.kv},
                                {"logits", f.last_only ? "last" : "all"},
                                {"read_gb_per_second", bounds.read_bytes_per_second / 1e9},
                                {"gflops", bounds.flops_per_second / 1e9}};
  if (f.distinct_tokens != 0) out["distinct_tokens"] = f.distinct_tokens;
  if (config.mixture_layers() != 0) {
    out["mixture"] = {{"layers", config.mixture_layers()}, {"experts", config.experts}, {"used", config.experts_used}};
  }
  out["cells"] = nlohmann::ordered_json::array();
  for (const forward_cell& c : cells) {
    nlohmann::ordered_json one = {{"rows", c.rows},
                                  {"context", c.context},
                                  {"ms", c.best_ms},
                                  {"median_ms", c.median_ms},
                                  {"samples", c.samples},
                                  {"tokens_per_second", c.rows * 1e3 / c.best_ms},
                                  {"read_bound_ms", c.bytes / bounds.read_bytes_per_second * 1e3},
                                  {"flop_bound_ms", c.flops / bounds.flops_per_second * 1e3}};
    if (c.experts != 0) one["experts"] = c.experts;
    if (f.profile) one["profile_ms"] = json_of(c.spent);
    out["cells"].push_back(std::move(one));
  }
  return out;
}

}  // namespace

int run_forward(const forward_options& f) {
  const auto& chosen = kernels::process_table();
  if (chosen.table == nullptr) return report(failure{errc::invalid_argument, chosen.problem});
  const auto kv = parse_kv_type(f.kv);
  if (!kv) return report(kv.error());
  const auto numerics = model::parse_numerics(f.numerics);
  if (!numerics) return report(numerics.error());
  const auto file = gguf::gguf_file::open(f.model);
  if (!file) return report(file.error());
  const auto suited = model::table_for(**file, *chosen.table, *numerics, *kv);
  if (!suited) return report(suited.error());
  const kernels::kernel_table& table = **suited;
  kernels::worker_team team(f.threads, true);
  progress_line line(f.json != "-");
  const auto bounds = kernels::measure_bounds(table, team);
  const auto weights = model::load_weights(
      **file, table, team, [&](std::uint64_t done, std::uint64_t all) { show_loading(line, "model", done, all); });
  line.clear();
  if (!weights) return report(weights.error());
  const model::model_config& config = model::config_of(**weights);

  const std::uint32_t rows_max = *std::max_element(f.rows.begin(), f.rows.end());
  const std::uint32_t longest = *std::max_element(f.contexts.begin(), f.contexts.end()) + rows_max;
  if (longest > config.context) {
    return report(failure{errc::invalid_argument, "expected --context plus --rows up to the model's " +
                                                      std::to_string(config.context) + ", found " +
                                                      std::to_string(longest)});
  }
  auto made = forward_probe::create(**file, *weights, table, team,
                                    {.rows_max = std::max<std::uint32_t>(rows_max, 128),
                                     .tokens_max = longest,
                                     .kv = *kv,
                                     .last_only = f.last_only,
                                     .distinct_tokens = f.distinct_tokens,
                                     .profile = f.profile});
  if (!made) return report(made.error());
  forward_probe& p = **made;

  std::vector<std::uint32_t> contexts = f.contexts;
  std::sort(contexts.begin(), contexts.end());
  std::vector<forward_cell> cells;
  for (const std::uint32_t context : contexts) {
    line.show("reading " + std::to_string(context) + " tokens of context");
    p.grow_context(context);
    for (const std::uint32_t rows : f.rows) {
      line.show("rows " + std::to_string(rows) + ", context " + std::to_string(context));
      cells.push_back(p.measure(rows, {f.samples, f.seconds}));
    }
  }
  line.clear();
  const auto written = write_json(f.json, json_of(f, table, team.size(), bounds, config, cells));
  if (!written) return report(written.error());
  if (f.json == "-") return 0;
  std::printf("%s, %s kernels, %s products, %u threads, %s keys and values, logits of %s\n", f.model.c_str(),
              std::string(table.name).c_str(), model::name_of_products(table).c_str(), team.size(), f.kv.c_str(),
              f.last_only ? "the last row" : "all rows");
  std::printf("measured bounds: %.1f GB/s read, %.0f Gop/s of multiply-adds by %s kernels for %s\n",
              bounds.read_bytes_per_second / 1e9, bounds.flops_per_second / 1e9, std::string(table.name).c_str(),
              model::name_of_products(table).c_str());
  print_table(cells, bounds, config, f.profile);
  return 0;
}

}  // namespace redline::studies
