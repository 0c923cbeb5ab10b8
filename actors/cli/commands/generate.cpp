#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
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
      return failure{errc::invalid_argument, "wanted --tokens as numbers with commas between, found '" + list + "'"};
    }
    out.push_back(t);
    at = next < end ? next + 1 : end;
  }
  return out;
}

int run(const flags& f) {
  auto options = engine_options_of(f.models);
  if (!options) return report(options.error());
  const auto how = draft_options_of(f.method, !f.models.draft.empty());
  if (!how) return report(how.error());
  progress_line line;
  options->progress = [&](const std::string& what, std::uint64_t done, std::uint64_t all) {
    show_loading(line, what, done, all);
  };
  std::vector<token> prompt;
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
        g.eviction = eviction_options_of(f.eviction);
        g.sampling = f.sampling;
        g.stops = f.stops;
        g.ignore_end = f.ignore_eos;
        return g;
      },
      [&](const session_text& m) {
        if (!f.json) std::cout << m.text << std::flush;
      });
  line.clear();
  if (!got) return report(got.error());
  const auto& s = got->stats;
  nlohmann::ordered_json sources;
  for (const auto from : draft::all_sources) {
    sources[std::string(name_of(from))] = {{"drafted", s.of(from).drafted}, {"accepted", s.of(from).accepted}};
  }
  if (!f.json) {
    std::cout << "\n";
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
  std::cout << out.dump() << "\n";
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<flags>();
  auto* c = app.add_subcommand("generate", "Continue a prompt");
  add_model_flags(*c, f->models);
  add_method_flags(*c, f->method);
  add_eviction_flags(*c, f->eviction);
  auto* prompt = c->add_option("-p,--prompt", f->prompt, "Text to continue; special tokens in it are parsed");
  auto* tokens = c->add_option("--tokens", f->tokens, "The same as token ids: 1,2,3")->excludes(prompt);
  c->add_option("--prediction", f->prediction,
                "Text that the answer is likely to repeat; for the methods prediction and auto");
  c->add_option("-n,--max-tokens", f->tokens_max, "Tokens to generate at most")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  c->add_option("--temperature", f->sampling.temperature, "0: greedy")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--top-k", f->sampling.top_k, "Only the k most probable; 0: all")
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--top-p", f->sampling.top_p, "Only the most probable that hold this share")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--min-p", f->sampling.min_p, "Only those at least this probable, relative to the best")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--repetition-penalty", f->sampling.repetition_penalty, "Over prompt and output; 1: off")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--presence-penalty", f->sampling.presence_penalty, "Over the output")
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--frequency-penalty", f->sampling.frequency_penalty, "Over the output")
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--seed", f->sampling.seed, "Same seed, same output, with any method")
      ->capture_default_str()
      ->group("Sampling");
  c->add_option("--stop", f->stops, "Stop before this text (repeatable)");
  c->add_flag("--ignore-eos", f->ignore_eos, "Go on after end tokens");
  c->add_flag("--json", f->json, "Print one JSON object");
  c->callback([f, prompt, tokens, &exit_code] {
    if (prompt->empty() && tokens->empty()) throw CLI::RequiredError("--prompt or --tokens");
    exit_code = run(*f);
  });
}

}  // namespace redline::actors::cli
