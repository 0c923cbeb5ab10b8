// redline bench prefix: the time to the first token of prompts that begin like an earlier one.

#include "bench/studies/cache/bench_prefix.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/node/engine.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/common/local_runner.hpp"

namespace redline::studies {
namespace {

/// What one kind of prompt took.
struct series {
  std::vector<double> first_token_ms;
  std::uint64_t cached_tokens = 0;

  void add(const session_stats& s) {
    first_token_ms.push_back(static_cast<double>(s.first_token_us) / 1e3);
    cached_tokens += s.cached_tokens;
  }
  [[nodiscard]] double median_ms() const {
    auto sorted = first_token_ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

std::vector<token> random_tokens(const engine& e, std::size_t count, std::mt19937& random) {
  std::vector<token> tokens;
  while (tokens.size() < count) {
    const auto t = static_cast<token>(random() % e.tokenizer()->size());
    if (!e.tokenizer()->is_end_of_generation(t)) tokens.push_back(t);
  }
  return tokens;
}

result<void> measure(const prefix_options& f) {
  REDLINE_TRY_ASSIGN(auto options, to_engine_options(f.models));
  REDLINE_TRY_ASSIGN(const auto runner, local_runner::create(std::move(options)));
  const engine& e = runner->parts();
  const std::uint64_t needed = std::uint64_t{f.prefix_tokens} + f.own_tokens + f.answer_tokens;
  if (needed > e.context_max()) {
    return failure{errc::context_length_exceeded,
                   "expected --prefix-tokens, --own-tokens and --tokens of together at most " +
                       std::to_string(e.context_max()) + ", found " + std::to_string(needed)};
  }
  std::mt19937 random(1);
  const auto beginning = random_tokens(e, f.prefix_tokens, random);
  std::uint64_t tenants = 1;
  const auto ask = [&](std::uint64_t tenant, std::span<const token> own) {
    generation_spec g{{.tenant = {tenant}, .tokens_max = f.answer_tokens, .ignore_end = true}, beginning};
    g.prompt.insert(g.prompt.end(), own.begin(), own.end());
    return runner->run(std::move(g), {.how = draft::method::regular}, [](const session_text&) {});
  };
  // The first answer also loads the model and leaves the common beginning in the cache.
  REDLINE_TRY_ASSIGN(const auto first, ask(tenants, random_tokens(e, f.own_tokens, random)));
  series alone;
  series sharing;
  std::uint64_t identical = 0;
  for (std::uint32_t i = 0; i < f.repeat; ++i) {
    const auto own = random_tokens(e, f.own_tokens, random);
    REDLINE_TRY_ASSIGN(const auto plain, ask(++tenants, own));  // a tenant that has not asked before
    REDLINE_TRY_ASSIGN(const auto again, ask(1, own));
    alone.add(plain.stats);
    sharing.add(again.stats);
    identical += plain.tokens == again.tokens ? 1 : 0;
  }
  const double speed_up = alone.median_ms() / std::max(sharing.median_ms(), 1e-3);
  std::printf(
      "%u tokens in common, %u of its own; median time to the first token over %u prompts\n"
      "  alone    %9.2f ms\n  sharing  %9.2f ms, %.0f tokens found\n  %.1fx; %llu of %u answers identical\n",
      f.prefix_tokens, f.own_tokens, f.repeat, alone.median_ms(), sharing.median_ms(),
      static_cast<double>(sharing.cached_tokens) / f.repeat, speed_up, static_cast<unsigned long long>(identical),
      f.repeat);
  REDLINE_TRY(write_json(f.json, {{"benchmark", "prefix"},
                                  {"model", f.models.model},
                                  {"prefix_tokens", f.prefix_tokens},
                                  {"own_tokens", f.own_tokens},
                                  {"alone_ms", alone.first_token_ms},
                                  {"sharing_ms", sharing.first_token_ms},
                                  {"cached_tokens", sharing.cached_tokens},
                                  {"speed_up", speed_up},
                                  {"identical", identical == f.repeat}}));
  if (identical != f.repeat) return failure{errc::internal, "answers with shared pages differ from those without"};
  return {};
}

}  // namespace

int run_prefix(const prefix_options& options) {
  const auto done = measure(options);
  return done ? 0 : report(done.error());
}

}  // namespace redline::studies
