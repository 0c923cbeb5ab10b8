#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/local_runner.hpp"
#include "actors/cli/progress_line.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::actors::cli {
namespace {

struct flags {
  model_flags models;
  method_flags method;
  eviction_flags eviction;
  std::string prompt;
  std::string tokens;
  std::string prediction;
  std::uint32_t tokens_max = 128;
  model::sampling_params sampling;
  std::vector<std::string> stops;
  bool ignore_eos = false;
  bool json = false;
};

result<std::vector<token>> parse_tokens(const std::string& list) {
  std::vector<token> out;
  const char* at = list.data();
  const char* end = at + list.size();
  while (at < end) {
    token t = 0;
    const auto [next, error] = std::from_chars(at, end, t);
    if (error != std::errc() || (next < end && *next != ',')) {
      return failure{errc::invalid_argument, "expected --tokens as numbers with commas between, found '" + list + "'"};
    }
    out.push_back(t);
    at = next < end ? next + 1 : end;
  }
  return out;
}

int run(const flags& f) {
  auto options = to_engine_options(f.models);
  if (!options) return report(options.error());
  const auto how = to_draft_options(f.method, !f.models.draft.empty());
  if (!how) return report(how.error());
  progress_line line;
  options->progress = [&](const std::string& what, std::uint64_t done, std::uint64_t all) {
    show_loading(line, what, done, all);
  };
  std::vector<token> prompt;
  utf8::stream pieces(utf8::stream::invalid_bytes::keep);
  const auto got = generate_locally(
      std::move(*options), *how,
      [&](const engine& e) -> result<generation_spec> {
        if (!f.tokens.empty()) {
          REDLINE_TRY_ASSIGN(prompt, parse_tokens(f.tokens));
        } else {
          prompt = e.tokenizer()->encode(f.prompt, {.parse_special = true, .add_bos_eos = true});
        }
        generation_spec g;
        g.prompt = prompt;
        g.prediction = e.tokenizer()->encode(f.prediction);
        g.tokens_max = f.tokens_max;
        g.eviction = to_eviction_options(f.eviction);
        g.sampling = f.sampling;
        g.stops = f.stops;
        g.ignore_end = f.ignore_eos;
        return g;
      },
      [&](const session_text& m) {
        if (f.json) return;
        print_text(pieces.feed(m.text));
        std::cout.flush();
      });
  line.clear();
  if (!got) return report(got.error());
  const auto& s = got->stats;
  nlohmann::ordered_json sources;
  for (const auto from : draft::all_sources) {
    sources[std::string(name_of(from))] = {{"drafted", s.of(from).drafted}, {"accepted", s.of(from).accepted}};
  }
  if (!f.json) {
    print_text(pieces.flush() + "\n");
    return 0;
  }
  const nlohmann::ordered_json out = {{"prompt_tokens", prompt},
                                      {"tokens", got->tokens},
                                      {"text", utf8::sanitize(got->text)},
                                      {"finish_reason", got->reason == finish_reason::length ? "length" : "stop"},
                                      {"stats",
                                       {{"method", name_of(how->how)},
                                        {"prompt_count", s.prompt_tokens},
                                        {"completion_count", s.completion_tokens},
                                        {"target_passes", s.target_passes},
                                        {"draft_passes", s.draft_passes},
                                        {"drafted", s.drafted},
                                        {"accepted", s.accepted},
                                        {"sources", sources},
                                        {"target_rows", s.target_rows},
                                        {"rounds", s.rounds},
                                        {"eviction",
                                         {{"policy", f.eviction.policy},
                                          {"evictions", s.evictions},
                                          {"evicted_tokens", s.evicted_tokens},
                                          {"reevaluated", s.reevaluated}}},
                                        {"first_token_seconds", static_cast<double>(s.first_token_us) / 1e6},
                                        {"seconds", static_cast<double>(s.total_us) / 1e6}}}};
  print_text(out.dump() + "\n");
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<flags>();
  const command c(app, "generate", "Continue a text");
  add_model_flags(c, f->models);
  add_method_flags(c, f->method);
  add_eviction_flags(c, f->eviction);
  const option prompt = c.add("-p,--prompt", f->prompt, "Text to continue; special tokens in it are parsed");
  const option text = c.add("TEXT", f->prompt, "Text to continue, as --prompt").exclude(prompt);
  const option tokens = c.add("--tokens", f->tokens, "The same as token ids: 1,2,3").exclude(prompt).exclude(text);
  c.add("--prediction", f->prediction, "Text that the answer is likely to repeat; for the methods prediction and auto");
  c.add("-n,--max-tokens", f->tokens_max, "Tokens to generate at most").range(1, 1 << 20);
  c.add("--temperature", f->sampling.temperature,
        "0: always the most probable token; above: drawn, the higher the more evenly")
      .range(0.0, 100.0)
      .group("Sampling");
  c.add("--top-k", f->sampling.top_k, "Only the k most probable; 0: all").group("Sampling");
  c.add("--top-p", f->sampling.top_p, "Only the most probable that hold this share").range(0.0, 1.0).group("Sampling");
  c.add("--min-p", f->sampling.min_p, "Only those at least this probable, relative to the best")
      .range(0.0, 1.0)
      .group("Sampling");
  c.add("--repetition-penalty", f->sampling.repetition_penalty, "Over prompt and output; 1: off")
      .range(0.01, 100.0)
      .group("Sampling");
  c.add("--presence-penalty", f->sampling.presence_penalty, "Over the output").group("Sampling");
  c.add("--frequency-penalty", f->sampling.frequency_penalty, "Over the output").group("Sampling");
  c.add("--seed", f->sampling.seed, "Same seed, same output, with any method").group("Sampling");
  c.add("--stop", f->stops, "Stop before this text (repeatable)");
  c.add_flag("--ignore-eos", f->ignore_eos, "Go on where the model would end");
  c.add_flag("--json", f->json, "Print one JSON object");
  c.on_run(exit_code, [f, prompt, text, tokens] {
    if (!prompt.given() && !text.given() && !tokens.given()) {
      return report(failure{errc::invalid_argument, "expected a TEXT to continue or --tokens IDS, found neither"});
    }
    return run(*f);
  });
}

}  // namespace redline::actors::cli
