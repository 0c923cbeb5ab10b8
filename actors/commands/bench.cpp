// redline bench forward: the cost of one forward pass as a function of its rows and of the context before them.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/commands/command.hpp"
#include "kernels/machine_bounds.hpp"
#include "runtime/model/transformer.hpp"

namespace redline::actors::commands {
namespace {

struct flags {
  std::string model;
  std::vector<std::uint32_t> rows = {1, 2, 4, 8, 16, 32, 64, 128, 512};
  std::vector<std::uint32_t> contexts = {0};
  std::uint32_t threads = 0;
  std::string kv = "f16";
  std::uint32_t samples = 5;
  double seconds = 1.0;
  bool last_only = false;
  bool profile = false;
  bool json = false;
};

/// One cell of the table: rows tokens after `context` others.
struct cell {
  std::uint32_t rows = 0;
  std::uint32_t context = 0;
  double best_ms = 0;
  double median_ms = 0;
  std::uint32_t samples = 0;
  double bytes = 0;  // that a pass must read: weights once, and the keys and values it attends to
  double flops = 0;  // multiply-adds counted twice
  model::transformer::times spent;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A model with a sequence of synthetic tokens.
class probe {
 public:
  probe(std::unique_ptr<model::transformer> m, std::uint64_t weight_bytes, std::uint32_t pages, bool last_only,
        std::uint64_t kv_bytes_per_token)
      : model_(std::move(m)),
        pool_(pages),
        last_only_(last_only),
        weight_bytes_(weight_bytes),
        kv_bytes_per_token_(kv_bytes_per_token) {}

  void grow_context(std::uint32_t tokens) {
    while (table_.token_count() < tokens) {
      pass(std::min(model_->rows_max(), tokens - table_.token_count()), false);
    }
  }

  cell measure(std::uint32_t rows, const flags& f) {
    const std::uint32_t context = table_.token_count();
    cell c{.rows = rows, .context = context};
    std::vector<double> seconds;
    const auto once = [&] {
      const double start = seconds_now();
      pass(rows, true);
      seconds.push_back(seconds_now() - start);
      table_.truncate(pool_, context);
    };
    once();  // warms caches and buffers
    const double begin = seconds_now();
    const model::transformer::times before = model_->time_spent();
    seconds.clear();
    while (seconds.size() < f.samples || (seconds_now() - begin < f.seconds && seconds.size() < 200)) once();
    c.spent = per_pass(before, model_->time_spent(), static_cast<double>(seconds.size()));
    std::sort(seconds.begin(), seconds.end());
    c.best_ms = seconds.front() * 1e3;
    c.median_ms = seconds[seconds.size() / 2] * 1e3;
    c.samples = static_cast<std::uint32_t>(seconds.size());
    count_work(c);
    return c;
  }

 private:
  void pass(std::uint32_t rows, bool logits) {
    const std::uint32_t first = table_.token_count();
    tokens_.resize(rows);
    for (std::uint32_t i = 0; i < rows; ++i) {
      tokens_[i] = static_cast<token>((std::uint64_t{first + i} * 7919 + 13) % model_->config().vocabulary);
    }
    REDLINE_ASSERT(table_.append(pool_, rows), "the pool was sized for the longest sequence");
    const model::run r{.tokens = tokens_,
                       .first_position = static_cast<position>(first),
                       .table = table_.pieces(),
                       .logits_begin = !logits ? rows : last_only_ ? rows - 1 : 0};
    model_->forward({&r, 1});
  }

  static model::transformer::times per_pass(const model::transformer::times& a, const model::transformer::times& b,
                                            double passes) {
    const auto mean = [&](double model::transformer::times::*part) { return (b.*part - a.*part) / passes; };
    using t = model::transformer::times;
    return {.prepare = mean(&t::prepare), .query_key_value = mean(&t::query_key_value), .store = mean(&t::store),
            .attention = mean(&t::attention), .output = mean(&t::output), .feed_forward = mean(&t::feed_forward),
            .norms = mean(&t::norms), .head = mean(&t::head)};
  }

  void count_work(cell& c) const {
    const model::model_config& m = model_->config();
    const double rows = c.rows;
    const double heads_width = 1.0 * m.head_dim * m.heads;
    const double kv_width = 1.0 * m.head_dim * m.kv_heads;
    const double layer = 1.0 * m.width * (2 * heads_width + 2 * kv_width + 3.0 * m.feed_forward);
    const double logits_rows = last_only_ ? 1 : rows;
    const double seen = rows * c.context + rows * (rows + 1) / 2;  // keys over all rows
    c.flops = 2 * (m.layers * (layer * rows + 2 * heads_width * seen) + logits_rows * m.width * m.vocabulary);
    c.bytes = static_cast<double>(weight_bytes_) + static_cast<double>(kv_bytes_per_token_) * (c.context + rows);
  }

  std::unique_ptr<model::transformer> model_;
  kv::page_pool pool_;
  kv::page_table table_;
  std::vector<token> tokens_;
  bool last_only_;
  std::uint64_t weight_bytes_;
  std::uint64_t kv_bytes_per_token_;
};

/// Bytes that every pass reads: all tensors, but of an embedding that is not the head only single rows.
std::uint64_t bytes_per_pass(const gguf::gguf_file& file, const model::model_config& config) {
  std::uint64_t bytes = 0;
  for (const auto& t : file.tensors()) {
    if (t.name != "token_embd.weight" || config.tied_head) bytes += t.bytes.size();
  }
  return bytes;
}

nlohmann::ordered_json json_of(const model::transformer::times& t) {
  return {{"prepare", t.prepare * 1e3}, {"query_key_value", t.query_key_value * 1e3}, {"store", t.store * 1e3},
          {"attention", t.attention * 1e3}, {"output", t.output * 1e3}, {"feed_forward", t.feed_forward * 1e3},
          {"norms", t.norms * 1e3}, {"head", t.head * 1e3}};
}

void print_table(const std::vector<cell>& cells, const kernels::machine_bounds& bounds, bool profile) {
  std::printf("%6s %8s %10s %10s %12s %14s %14s\n", "rows", "context", "best ms", "median ms", "tokens/s",
              "of read bound", "of flop bound");
  for (const cell& c : cells) {
    const double s = c.best_ms / 1e3;
    std::printf("%6u %8u %10.2f %10.2f %12.1f %13.0f%% %13.0f%%\n", c.rows, c.context, c.best_ms, c.median_ms,
                c.rows / s, 100 * c.bytes / s / bounds.read_bytes_per_second,
                100 * c.flops / s / bounds.flops_per_second);
    if (!profile) continue;
    const nlohmann::ordered_json parts = json_of(c.spent);
    for (const auto& [name, ms] : parts.items()) {
      std::printf("%16s %-16s %8.3f ms\n", "", name.c_str(), ms.get<double>());
    }
  }
}

int run_forward(const flags& f) {
  const auto& chosen = kernels::process_table();
  if (chosen.table == nullptr) return report(failure{errc::invalid_argument, chosen.problem});
  const auto file = gguf::gguf_file::open(f.model);
  if (!file) return report(file.error());
  kernels::worker_team team(f.threads, true);
  progress_line line(!f.json);
  const auto bounds = kernels::measure_bounds(*chosen.table, team);
  const auto weights = model::load_weights(**file, *chosen.table, team, [&](std::uint64_t done, std::uint64_t all) {
    show_loading(line, "model", done, all);
  });
  line.clear();
  if (!weights) return report(weights.error());
  const model::model_config& config = model::config_of(**weights);

  const std::uint32_t rows_max = *std::max_element(f.rows.begin(), f.rows.end());
  const std::uint32_t longest = *std::max_element(f.contexts.begin(), f.contexts.end()) + rows_max;
  if (longest > config.context) {
    return report(failure{errc::invalid_argument, "wanted --context plus --rows up to the model's " +
                                                      std::to_string(config.context) + ", found " +
                                                      std::to_string(longest)});
  }
  const model::kv_type kv = f.kv == "f32"   ? model::kv_type::f32
                            : f.kv == "f16" ? model::kv_type::f16
                                            : model::kv_type::bf16;
  const std::uint32_t pages = (longest + kv::page_tokens - 1) / kv::page_tokens;
  auto made = model::transformer::create(*weights, *chosen.table, team,
                                         {.pages_count = pages,
                                          .kv = kv,
                                          .rows_max = std::max<std::uint32_t>(rows_max, 128),
                                          .profile = f.profile});
  if (!made) return report(made.error());
  probe p(std::move(*made), bytes_per_pass(**file, config), pages, f.last_only,
          model::page_bytes(config, kv) / kv::page_tokens);

  std::vector<std::uint32_t> contexts = f.contexts;
  std::sort(contexts.begin(), contexts.end());
  std::vector<cell> cells;
  for (const std::uint32_t context : contexts) {
    line.show("reading " + std::to_string(context) + " tokens of context");
    p.grow_context(context);
    for (const std::uint32_t rows : f.rows) {
      line.show("rows " + std::to_string(rows) + ", context " + std::to_string(context));
      cells.push_back(p.measure(rows, f));
    }
  }
  line.clear();
  if (f.json) {
    nlohmann::ordered_json out = {{"model", f.model},
                                  {"target", chosen.table->name},
                                  {"threads", team.size()},
                                  {"kv", f.kv},
                                  {"logits", f.last_only ? "last" : "all"},
                                  {"read_gb_per_second", bounds.read_bytes_per_second / 1e9},
                                  {"gflops", bounds.flops_per_second / 1e9},
                                  {"cells", nlohmann::ordered_json::array()}};
    for (const cell& c : cells) {
      nlohmann::ordered_json one = {{"rows", c.rows},
                                    {"context", c.context},
                                    {"ms", c.best_ms},
                                    {"median_ms", c.median_ms},
                                    {"samples", c.samples},
                                    {"tokens_per_second", c.rows * 1e3 / c.best_ms},
                                    {"read_bound_ms", c.bytes / bounds.read_bytes_per_second * 1e3},
                                    {"flop_bound_ms", c.flops / bounds.flops_per_second * 1e3}};
      if (f.profile) one["profile_ms"] = json_of(c.spent);
      out["cells"].push_back(std::move(one));
    }
    std::cout << out.dump() << "\n";
    return 0;
  }
  std::printf("%s, %s kernels, %u threads, %s keys and values, logits of %s\n", f.model.c_str(),
              std::string(chosen.table->name).c_str(), team.size(), f.kv.c_str(), f.last_only ? "the last row" : "all rows");
  std::printf("measured bounds: %.1f GB/s read, %.0f GFLOP/s float multiply-add\n", bounds.read_bytes_per_second / 1e9,
              bounds.flops_per_second / 1e9);
  print_table(cells, bounds, f.profile);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto* bench = app.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  auto f = std::make_shared<flags>();
  auto* c = bench->add_subcommand("forward", "Cost of one forward pass by rows and context, beside the machine's bounds");
  c->add_option("--model", f->model, "A GGUF file")->required()->check(CLI::ExistingFile);
  c->add_option("--rows", f->rows, "Rows of a pass")->delimiter(',')->check(CLI::Range(1, 4096))->capture_default_str();
  c->add_option("--context", f->contexts, "Tokens before them")->delimiter(',')->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  c->add_option("--threads", f->threads, "Compute threads; 0: what this process may use")->check(CLI::Range(0, 1024))
      ->capture_default_str();
  c->add_option("--kv", f->kv, "Keys and values")->check(CLI::IsMember({"f32", "f16", "bf16"}))->capture_default_str();
  c->add_option("--samples", f->samples, "Passes per cell at least")->check(CLI::Range(1, 1000))->capture_default_str();
  c->add_option("--seconds", f->seconds, "Time per cell at least")->check(CLI::Range(0.0, 600.0))->capture_default_str();
  c->add_flag("--last-only", f->last_only, "Logits of the last row only (default: of all, as verification wants)");
  c->add_flag("--profile", f->profile, "Time of each part of a pass");
  c->add_flag("--json", f->json, "Print one JSON object");
  c->callback([f, &exit_code] { exit_code = run_forward(*f); });
}

}  // namespace redline::actors::commands
