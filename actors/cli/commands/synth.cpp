#include <iostream>

#include "actors/cli/command.hpp"
#include "runtime/convert/synth.hpp"

namespace redline::actors::cli {
namespace {

struct flags {
  std::string shape = "qwen2-0.5b";
  std::string type = "q8_0";
  std::string out;
  std::string tokenizer;
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;
  // 0: the shape's.
  std::uint32_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, vocabulary = 0,
                context = 0;
};

result<convert::synth_shape> shape_of(const flags& f) {
  REDLINE_TRY_ASSIGN(convert::synth_shape s, convert::find_shape(f.shape));
  const auto set = [](std::uint32_t& into, std::uint32_t number) {
    if (number != 0) into = number;
  };
  set(s.layers, f.layers);
  set(s.width, f.width);
  set(s.heads, f.heads);
  set(s.kv_heads, f.kv_heads);
  if (f.width != 0 || f.heads != 0) s.head_dim = s.width / s.heads;
  set(s.head_dim, f.head_dim);
  set(s.feed_forward, f.feed_forward);
  set(s.vocabulary, f.vocabulary);
  set(s.context, f.context);
  return s;
}

result<void> run(const flags& f) {
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
  auto f = std::make_shared<flags>();
  auto* c = app.add_subcommand("synth", "Write a model of seeded random weights, for benchmarks");
  c->add_option("OUT", f->out, "The GGUF file to write")->required();
  c->add_option("--shape", f->shape, "One of " + convert::shape_names())->capture_default_str();
  c->add_option("--type", f->type, "One of " + convert::output_type_names())->capture_default_str();
  c->add_option("--tokenizer", f->tokenizer, "Take the tokenizer of this GGUF file")->check(CLI::ExistingFile);
  c->add_option("--seed", f->seed, "Seed of the weights")->capture_default_str();
  add_threads_flag(*c, f->threads);
  const auto size = [&](const char* name, std::uint32_t& into, const char* what) {
    c->add_option(name, into, what)->check(CLI::Range(1, 1 << 24))->group("Instead of the shape's");
  };
  size("--layers", f->layers, "Layers");
  size("--width", f->width, "Width of the residual stream");
  size("--heads", f->heads, "Query heads");
  size("--kv-heads", f->kv_heads, "Heads for keys and values");
  size("--head-dim", f->head_dim, "Size of a head");
  size("--feed-forward", f->feed_forward, "Width of the feed-forward part");
  size("--vocabulary", f->vocabulary, "Tokens");
  size("--context-length", f->context, "Longest context that the file claims");
  c->callback([f, &exit_code] {
    const auto done = run(*f);
    if (!done) exit_code = report(done.error());
  });
}

}  // namespace redline::actors::cli
