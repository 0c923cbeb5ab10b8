// redline-bench formats: the rounds that recorded answers take with and without the recognition of prompt formats.

#include "bench/studies/edits/bench_formats.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/cli/command.hpp"
#include "bench/studies/common/json_file.hpp"
#include "bench/studies/edits/draft_study.hpp"
#include "runtime/formats/recognise.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;

struct machine_costs {
  const char* name;
  pass_costs costs;
};
/// Without a draft model. The first is a model of 0.5B parameters on two cores with VNNI.
constexpr machine_costs format_machines[] = {
    {"0.5B, VNNI", {.target_us = 7700, .row_us = 640, .overhead_us = 150}},
    {"cheap rows", {.target_us = 7700, .row_us = 60, .overhead_us = 150}},
};

struct recorded {
  known_answer known;
  std::uint64_t least = 0;
};
using by_format = std::map<std::string, std::vector<recorded>>;

result<by_format> read_bodies(const format_study_options& f) {
  REDLINE_TRY_ASSIGN(const auto file, gguf::gguf_file::open(f.model));
  REDLINE_TRY_ASSIGN(const auto tokenizer, text::tokenizer::from_file(*file));
  std::ifstream in(f.bodies);
  by_format out;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    const json body = json::parse(line, nullptr, false);
    if (!body.is_object() || !body.value("prompt", json()).is_string() || !body.value("answer", json()).is_string()) {
      return failure{errc::invalid_argument, f.bodies + ":" + std::to_string(number) +
                                                 ": expected an object with the texts 'prompt' and 'answer'"};
    }
    const auto& prompt = body["prompt"].get_ref<const std::string&>();
    const auto expected = formats::recognise(prompt);
    recorded one{.known = {.prompt = tokenizer->encode(prompt),
                           .prediction = expected ? tokenizer->encode(expected->text) : std::vector<token>{},
                           .answer = tokenizer->encode(body["answer"].get_ref<const std::string&>()),
                           .predicted_by = draft::source::format}};
    one.known.answer.push_back(1);  // an arbitrary end token
    one.least = rounds_along(expected ? one.known.prediction : one.known.prompt, one.known.answer);
    out[std::string(expected ? expected->format : "none")].push_back(std::move(one));
  }
  if (out.empty()) return failure{errc::invalid_argument, f.bodies + " has no bodies"};
  return out;
}

replay_cost replay_recorded(const std::vector<recorded>& all, draft::method how, const pass_costs& costs) {
  draft_replay_study study({.how = how, .costs = costs, .model_right = 0, .constants = {}});
  replay_cost sum;
  for (const auto& one : all) sum += study.replay(one.known);
  return sum;
}

}  // namespace

std::uint64_t rounds_along(std::span<const token> expected, std::span<const token> answer) {
  std::map<std::pair<token, token>, std::vector<std::size_t>> pairs;
  for (std::size_t i = 0; i + 1 < expected.size(); ++i) pairs[{expected[i], expected[i + 1]}].push_back(i);
  std::uint64_t rounds = 0;
  for (std::size_t at = 0; at < answer.size(); ++rounds) {
    std::size_t longest = 0;
    if (at + 1 < answer.size()) {
      if (const auto found = pairs.find({answer[at], answer[at + 1]}); found != pairs.end()) {
        for (const std::size_t from : found->second) {
          const auto left = answer.subspan(at);
          const auto there = expected.subspan(from);
          const auto end = std::mismatch(left.begin(), left.end(), there.begin(), there.end()).first;
          longest = std::max(longest, static_cast<std::size_t>(end - left.begin()));
        }
      }
    }
    at += longest + 1;
  }
  return rounds;
}

int run_formats(const format_study_options& f) {
  const auto bodies = read_bodies(f);
  if (!bodies) return report(bodies.error());
  json out = json::array();
  std::printf("%-16s %6s %7s %6s | %-10s | %6s %6s | %6s %6s | %7s %7s %7s | %6s %6s\n", "format", "bodies", "tokens",
              "least", "machine", "lookup", "known", "lookup", "known", "lookup", "known", "least", "lookup", "known");
  std::printf("%-38s | %-10s | %13s | %13s | %23s | %13s\n", "", "", "rounds", "times least", "seconds",
              "times least");
  for (const auto& [format, all] : *bodies) {
    std::size_t tokens = 0;
    std::uint64_t least = 0;
    for (const auto& one : all) {
      tokens += one.known.answer.size();
      least += one.least;
    }
    for (const auto& [name, costs] : format_machines) {
      const auto lookup = replay_recorded(all, draft::method::lookup, costs);
      const auto known = replay_recorded(all, draft::method::prediction, costs);
      const auto times = [least](const replay_cost& c) {
        return static_cast<double>(c.rounds) / static_cast<double>(std::max<std::uint64_t>(least, 1));
      };
      // The least rounds, without a rejected row.
      const double least_us = static_cast<double>(least) * (costs.target_us + costs.overhead_us) +
                              static_cast<double>(tokens - least) * costs.row_us;
      std::printf("%-16s %6zu %7zu %6llu | %-10s | %6llu %6llu | %6.2f %6.2f | %7.2f %7.2f %7.2f | %6.2f %6.2f\n",
                  format.c_str(), all.size(), tokens, static_cast<unsigned long long>(least), name,
                  static_cast<unsigned long long>(lookup.rounds), static_cast<unsigned long long>(known.rounds),
                  times(lookup), times(known), lookup.us / 1e6, known.us / 1e6, least_us / 1e6, lookup.us / least_us,
                  known.us / least_us);
      out.push_back({{"format", format},
                     {"machine", name},
                     {"bodies", all.size()},
                     {"tokens", tokens},
                     {"least_rounds", least},
                     {"least_us", least_us},
                     {"lookup", {{"rounds", lookup.rounds}, {"rows", lookup.rows}, {"us", lookup.us}}},
                     {"known", {{"rounds", known.rounds}, {"rows", known.rows}, {"us", known.us}}}});
    }
  }
  if (f.json.empty()) return 0;
  const auto written = write_json(f.json, out);
  return written ? 0 : report(written.error());
}

}  // namespace redline::studies
