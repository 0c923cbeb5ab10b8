#include <charconv>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/flags/generation_flags.hpp"
#include "actors/cli/flags/model_flags.hpp"
#include "actors/cli/json_members.hpp"
#include "actors/cli/model_door.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/draft/source.hpp"
#include "runtime/sampling/sampling.hpp"

namespace redline::actors::cli {
namespace {

using json = nlohmann::ordered_json;

struct generate_flags {
  model_flags models;
  method_flags method;
  eviction_flags eviction;
  std::string prompt;
  std::string tokens;
  std::string prediction;
  std::uint32_t tokens_max = 128;
  sampling::sampling_params sampling;
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
    if (error != std::errc() || t < 0 || (next < end && *next != ',')) {
      return failure{errc::invalid_argument, "expected --tokens as numbers separated by commas, found '" + list + "'"};
    }
    out.push_back(t);
    at = next < end ? next + 1 : end;
  }
  return out;
}

/// Requests are JSON, which contains only valid characters.
result<void> check_text(const char* flag, const std::string& text) {
  const std::size_t valid = utf8::valid_prefix_bytes(text);
  if (valid == text.size()) return {};
  return failure{errc::invalid_argument, std::string(flag) + ": expected text in UTF-8, found an invalid byte at " +
                                             std::to_string(valid + 1) + "; --tokens accepts any token ids"};
}

/// A body for /v1/completions that sets what the flags say, regardless of the server's defaults.
result<json> request_of(const generate_flags& f) {
  json body = {
      {"max_tokens", f.tokens_max},
      {"temperature", f.sampling.temperature},
      {"top_k", f.sampling.top_k},
      {"top_p", f.sampling.top_p},
      {"min_p", f.sampling.min_p},
      {"repetition_penalty", f.sampling.repetition_penalty},
      {"presence_penalty", f.sampling.presence_penalty},
      {"frequency_penalty", f.sampling.frequency_penalty},
      {"seed", f.sampling.seed},
      {"ignore_eos", f.ignore_eos},
      {"stop", f.stops},
      {"stream", !f.json},
      {"return_token_ids", f.json},
      {"redline", {{"speculation", {{"method", f.method.method}}}, {"eviction", {{"policy", f.eviction.policy}}}}}};
  REDLINE_TRY(check_text("--prompt", f.prompt));
  REDLINE_TRY(check_text("--prediction", f.prediction));
  for (const std::string& stop : f.stops) REDLINE_TRY(check_text("--stop", stop));
  if (f.tokens.empty()) {
    body["prompt"] = f.prompt;
  } else {
    REDLINE_TRY_ASSIGN(body["prompt"], parse_tokens(f.tokens));
  }
  if (!f.prediction.empty()) body["prediction"] = {{"type", "content"}, {"content", f.prediction}};
  json& eviction = body["redline"]["eviction"];
  if (f.eviction.n_keep) eviction["n_keep"] = *f.eviction.n_keep;
  if (f.eviction.n_discard) eviction["n_discard"] = *f.eviction.n_discard;
  if (f.eviction.n_ctx > 0) eviction["n_ctx"] = f.eviction.n_ctx;
  return body;
}

/// Prints each part as it arrives.
int print_stream(const model_door& door, const json& body) {
  const auto told = door.ask("/v1/completions", body, [](const json& chunk) {
    const json& choices = member(chunk, "choices");
    if (!choices.is_array() || choices.empty()) return;
    print_text(text_of(member(choices[0], "text")));
    std::cout.flush();
  });
  if (!told) return report(told);
  print_text("\n");
  return 0;
}

int print_object(const model_door& door, const json& body, const std::string& method) {
  const auto got = door.ask("/v1/completions", body);
  if (!got) return report(got.error());
  const json& choice = member(*got, "choices").at(0);
  const json& usage = member(*got, "usage");
  const json& ours = member(usage, "redline");
  json sources;
  for (const auto from : draft::all_sources) {
    const std::string name(name_of(from));
    sources[name] = member(ours, "sources", name.c_str());
  }
  const json out = {{"prompt_tokens", member(choice, "prompt_token_ids")},
                    {"tokens", member(choice, "token_ids")},
                    {"text", member(choice, "text")},
                    {"finish_reason", member(choice, "finish_reason")},
                    {"stats",
                     {{"method", method},
                      {"prompt_count", member(usage, "prompt_tokens")},
                      {"completion_count", member(usage, "completion_tokens")},
                      {"target_passes", member(ours, "target_passes")},
                      {"draft_passes", member(ours, "draft_passes")},
                      {"drafted", member(ours, "drafted")},
                      {"accepted", member(ours, "accepted")},
                      {"sources", sources},
                      {"target_rows", member(ours, "rows")},
                      {"rounds", member(ours, "rounds")},
                      {"eviction",
                       {{"policy", member(ours, "eviction")},
                        {"evictions", member(ours, "evictions")},
                        {"evicted_tokens", member(ours, "evicted")},
                        {"reevaluated", member(ours, "reevaluated")}}},
                      {"first_token_seconds", member(ours, "first_token_seconds")},
                      {"seconds", member(ours, "seconds")}}}};
  print_text(out.dump() + "\n");
  return 0;
}

int run(const generate_flags& f) {
  const auto body = request_of(f);
  if (!body) return report(body.error());
  const auto door = model_door::of_own_server(f.models, f.method, 1);
  if (!door) return report(door.error());
  return f.json ? print_object(*door, *body, f.method.method) : print_stream(*door, *body);
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto f = std::make_shared<generate_flags>();
  const command c(app, "generate", "Continue a text");
  add_model_flags(c, f->models);
  add_method_flags(c, f->method);
  add_eviction_flags(c, f->eviction);
  const option prompt = c.add("-p,--prompt", f->prompt, "Text to continue; special tokens in it are parsed");
  const option text = c.add("TEXT", f->prompt, "Text to continue, like --prompt").exclude(prompt);
  const option tokens =
      c.add("--tokens", f->tokens, "Text to continue as token ids, such as 1,2,3").exclude(prompt).exclude(text);
  c.add("--prediction", f->prediction, "Text that the answer is likely to repeat; for the methods prediction and auto");
  c.add("-n,--max-tokens", f->tokens_max, "Maximum number of tokens to generate").range(1, 1 << 20);
  c.add("--temperature", f->sampling.temperature,
        "0 always takes the most probable token; higher values draw more evenly")
      .range(0.0, 2.0)
      .group("Sampling");
  c.add("--top-k", f->sampling.top_k, "Draw from the k most probable tokens; 0 or -1 means all")
      .range(-1, std::numeric_limits<std::int32_t>::max())
      .group("Sampling");
  c.add("--top-p", f->sampling.top_p, "Draw from the most probable tokens that together have this probability")
      .range(0.0, 1.0)
      .group("Sampling");
  c.add("--min-p", f->sampling.min_p, "Draw from the tokens at least this probable, relative to the most probable one")
      .range(0.0, 1.0)
      .group("Sampling");
  c.add("--repetition-penalty", f->sampling.repetition_penalty,
        "Penalty for tokens of the prompt and the output; 1 means none")
      .range(0.01, 10.0)
      .group("Sampling");
  c.add("--presence-penalty", f->sampling.presence_penalty, "Penalty for tokens that occur in the output")
      .range(-2.0, 2.0)
      .group("Sampling");
  c.add("--frequency-penalty", f->sampling.frequency_penalty, "Penalty for each time that a token occurs in the output")
      .range(-2.0, 2.0)
      .group("Sampling");
  c.add("--seed", f->sampling.seed, "Seed of the draws; the same seed gives the same output with any method")
      .group("Sampling");
  c.add("--stop", f->stops, "Stop before this text (repeatable)");
  c.add_flag("--ignore-eos", f->ignore_eos, "Continue where the model would end");
  c.add_flag("--json", f->json, "Print one JSON object");
  c.on_run(exit_code, [f, prompt, text, tokens] {
    if (!prompt.given() && !text.given() && !tokens.given()) {
      return report(failure{errc::invalid_argument, "expected a TEXT to continue or --tokens IDS, found neither"});
    }
    return run(*f);
  });
}

}  // namespace redline::actors::cli
