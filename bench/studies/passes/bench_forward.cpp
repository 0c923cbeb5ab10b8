// redline bench forward: the cost of one forward pass as a function of its rows and of the context before them.

#include "bench/studies/passes/bench_forward.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/forward_probe.hpp"
#include "actors/cli/progress_line.hpp"
#include "bench/studies/common/json_file.hpp"
#include "runtime/model/numerics.hpp"

namespace redline::studies {
namespace {

nlohmann::ordered_json json_of(const model::transformer::times& t) {
  return {{"prepare", t.prepare * 1e3},
          {"query_key_value", t.query_key_value * 1e3},
          {"store", t.store * 1e3},
          {"attention", t.attention * 1e3},
          {"recurrence", t.recurrence * 1e3},
          {"output", t.output * 1e3},
          {"feed_forward", t.feed_forward * 1e3},
          {"norms", t.norms * 1e3},
          {"head", t.head * 1e3}};
}

/// One width and context: with logits of every row, as verification needs, and of the last row, as a prompt does.
struct width_cells {
  std::optional<forward_cell> all;
  forward_cell last;
};

double rows_per_ms(const forward_cell& c) { return c.rows / c.best_ms; }

double bound_ms(const forward_cell& c, const kernels::machine_bounds& b) {
  return 1e3 * std::max(c.bytes / b.read_bytes_per_second, c.arithmetic_seconds(b));
}

void print_table(const std::vector<width_cells>& cells, const kernels::machine_bounds& bounds,
                 const architecture::model_shape& config, bool profile) {
  const std::uint32_t mixtures = config.mixture_layers();
  const bool has_all = cells.front().all.has_value();
  std::printf("%6s %8s", "rows", "context");
  if (has_all) std::printf(" | %9s %9s %9s %9s", "all: ms", "median", "rows/ms", "of bound");
  std::printf(" | %9s %9s %9s %9s%s\n", "last: ms", "median", "rows/ms", "of bound",
              mixtures == 0 ? "" : "  experts of a layer");
  const auto print_cell = [&](const forward_cell& c, const auto& same) {
    const bool is_best = std::ranges::all_of(cells, [&](const width_cells& other) {
      return other.last.context != c.context || rows_per_ms(same(other)) <= rows_per_ms(c);
    });
    std::printf(" | %9.2f %9.2f %8.3f%c %8.0f%%", c.best_ms, c.median_ms, rows_per_ms(c), is_best ? '*' : ' ',
                100 * bound_ms(c, bounds) / c.best_ms);
  };
  for (const width_cells& c : cells) {
    std::printf("%6u %8u", c.last.rows, c.last.context);
    if (c.all) print_cell(*c.all, [](const width_cells& w) -> const forward_cell& { return *w.all; });
    print_cell(c.last, [](const width_cells& w) -> const forward_cell& { return w.last; });
    if (mixtures != 0) std::printf(" %12.1f of %3u", c.last.experts / mixtures, config.experts);
    std::printf("\n");
    if (!profile) continue;
    const nlohmann::ordered_json last = json_of(c.last.spent), all = json_of(c.all.value_or(c.last).spent);
    for (const auto& [name, ms] : last.items()) {
      std::printf("%16s %-16s", "", name.c_str());
      if (c.all) std::printf(" %8.3f ms of all rows,", all[name].get<double>());
      std::printf(" %8.3f ms of the last row\n", ms.get<double>());
    }
  }
  std::printf("* the most rows per millisecond at that context\n");
}

nlohmann::ordered_json json_of(const forward_cell& c, const kernels::machine_bounds& bounds, bool profile) {
  nlohmann::ordered_json one = {{"rows", c.rows},
                                {"context", c.context},
                                {"ms", c.best_ms},
                                {"median_ms", c.median_ms},
                                {"samples", c.samples},
                                {"tokens_per_second", c.rows * 1e3 / c.best_ms},
                                {"read_bound_ms", c.bytes / bounds.read_bytes_per_second * 1e3},
                                {"arithmetic_bound_ms", c.arithmetic_seconds(bounds) * 1e3}};
  if (c.experts != 0) one["experts"] = c.experts;
  if (profile) one["profile_ms"] = json_of(c.spent);
  return one;
}

nlohmann::ordered_json json_of(const forward_options& f, const kernels::kernel_table& table, unsigned threads,
                               const kernels::machine_bounds& bounds, const architecture::model_shape& config,
                               const std::vector<width_cells>& cells) {
  nlohmann::ordered_json out = {{"benchmark", "forward"},
                                {"model", f.model},
                                {"target", table.name},
                                {"threads", threads},
                                {"numerics", model::name_of_products(table)},
                                {"kv", f.kv},
                                {"logits", f.last_only ? "last" : "all"},
                                {"read_gb_per_second", bounds.read_bytes_per_second / 1e9},
                                {"gflops", bounds.flops_per_second / 1e9},
                                {"product_gops", bounds.product_flops_per_second / 1e9},
                                {"float_gflops", bounds.float_flops_per_second / 1e9}};
  if (f.distinct_tokens != 0) out["distinct_tokens"] = f.distinct_tokens;
  if (config.mixture_layers() != 0) {
    out["mixture"] = {{"layers", config.mixture_layers()}, {"experts", config.experts}, {"used", config.experts_used}};
  }
  out["cells"] = nlohmann::ordered_json::array();
  for (const width_cells& c : cells) {
    out["cells"].push_back(json_of(c.all.value_or(c.last), bounds, f.profile));
    if (c.all) out["cells"].back()["last_row"] = json_of(c.last, bounds, f.profile);
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
  const architecture::model_shape& config = model::shape_of(**weights);

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
  std::vector<width_cells> cells;
  for (const std::uint32_t context : contexts) {
    line.show("reading " + std::to_string(context) + " tokens of context");
    p.grow_context(context);
    for (const std::uint32_t rows : f.rows) {
      line.show("rows " + std::to_string(rows) + ", context " + std::to_string(context));
      width_cells c;
      if (!f.last_only) c.all = p.measure(rows, {f.samples, f.seconds});
      p.want_logits(true);
      c.last = p.measure(rows, {f.samples, f.seconds});
      p.want_logits(f.last_only);
      cells.push_back(std::move(c));
    }
  }
  line.clear();
  const auto written = write_json(f.json, json_of(f, table, team.size(), bounds, config, cells));
  if (!written) return report(written.error());
  if (f.json == "-") return 0;
  std::printf("%s, %s kernels, %s products, %u threads, %s keys and values, logits of %s\n", f.model.c_str(),
              std::string(table.name).c_str(), model::name_of_products(table).c_str(), team.size(), f.kv.c_str(),
              f.last_only ? "the last row" : "all rows, and of the last row");
  std::printf(
      "measured bounds: %.1f GB/s read; %.0f Gop/s of products with scales (%.0f without); %.0f GFLOP/s of floats\n",
      bounds.read_bytes_per_second / 1e9, bounds.product_flops_per_second / 1e9, bounds.flops_per_second / 1e9,
      bounds.float_flops_per_second / 1e9);
  print_table(cells, bounds, config, f.profile);
  return 0;
}

}  // namespace redline::studies
