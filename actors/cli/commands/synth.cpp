#include <iostream>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/progress_line.hpp"
#include "runtime/convert/synth.hpp"

namespace redline::actors::cli {
namespace {

struct synth_flags {
  std::string shape = "qwen2-0.5b";
  std::string type = "q8_0";
  std::string out;
  std::string tokenizer;
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;
  bool mtp = false;
  // 0 means the shape's own value.
  std::uint32_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, vocabulary = 0,
                context = 0, experts = 0, experts_used = 0;
};

result<convert::synth_shape> shape_of(const synth_flags& f) {
  REDLINE_TRY_ASSIGN(convert::synth_shape s, convert::find_shape(f.shape));
  const auto set = [](std::uint32_t& into, std::uint32_t number) {
    if (number != 0) into = number;
  };
  if (f.layers != 0) s.set_layers(f.layers);
  set(s.width, f.width);
  set(s.heads, f.heads);
  set(s.kv_heads, f.kv_heads);
  if (!s.latent && (f.width != 0 || f.heads != 0)) s.head_dim = s.width / s.heads;
  set(s.head_dim, f.head_dim);
  set(s.feed_forward, f.feed_forward);
  set(s.vocabulary, f.vocabulary);
  set(s.context, f.context);
  set(s.experts, f.experts);
  set(s.experts_used, f.experts_used);
  s.extra_layers = f.mtp ? 1 : 0;
  if (!f.mtp || s.has_mtp()) return s;
  return failure{errc::invalid_argument, "--mtp: " + std::string(s.family_name()) + " models have no MTP layer"};
}

result<void> run(const synth_flags& f) {
  convert::synth_options options;
  REDLINE_TRY_ASSIGN(options.shape, shape_of(f));
  REDLINE_TRY_ASSIGN(options.type, convert::output_type::parse(f.type));
  options.seed = f.seed;
  std::shared_ptr<const gguf::gguf_file> tokenizer;
  if (!f.tokenizer.empty()) {
    REDLINE_TRY_ASSIGN(tokenizer, gguf::gguf_file::open(f.tokenizer));
    options.tokenizer = tokenizer.get();
  }
  kernels::worker_team team(f.threads);
  progress_line line;
  REDLINE_TRY(convert::write_synthetic(options, f.out, team, [&](std::uint64_t done, std::uint64_t all) {
    show_progress(line, "writing " + f.out, done, all);
  }));
  return {};
}

}  // namespace

void add_synth(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<synth_flags>();
  const command c(app, "synth", "Write a model of seeded random weights, for benchmarks");
  c.add("OUT", f->out, "The GGUF file to write").require().any_file();
  c.add("--shape", f->shape, "One of " + convert::shape_names());
  c.add("--type", f->type, "One of " + convert::output_type_names());
  c.add("--tokenizer", f->tokenizer, "Use the tokenizer of this GGUF file").existing_file();
  c.add("--seed", f->seed, "Seed of the weights");
  c.add_flag("--mtp", f->mtp, "Add the layer that drafts tokens, which some models of the shape have");
  add_threads_flag(c, f->threads);
  const auto size = [&](const char* name, std::uint32_t& into, const char* what) {
    c.add(name, into, what).hide_default().range(1, 1 << 24).group("Sizes instead of the shape's");
  };
  size("--layers", f->layers, "Number of layers");
  size("--width", f->width, "Width of the residual stream");
  size("--heads", f->heads, "Number of query heads");
  size("--kv-heads", f->kv_heads, "Number of heads for keys and values");
  size("--head-dim", f->head_dim, "Size of a head");
  size("--feed-forward", f->feed_forward, "Width of the feed-forward part");
  size("--vocabulary", f->vocabulary, "Number of tokens");
  size("--experts", f->experts, "Number of experts of a mixture-of-experts model");
  size("--experts-used", f->experts_used, "Number of experts that each token uses");
  size("--context-length", f->context, "Context length that the file declares");
  c.on_run(exit_code, [f] { return report(run(*f)); });
}

}  // namespace redline::actors::cli
