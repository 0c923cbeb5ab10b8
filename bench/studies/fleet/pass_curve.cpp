#include "bench/studies/fleet/pass_curve.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "runtime/base/strict_json.hpp"

namespace redline::studies {
namespace {

constexpr double us_max = 3.6e9;  // a pass takes less than an hour
constexpr double rows_max = 1 << 20;
constexpr int fitting_rounds = 8;  // enough that the model's prior no longer counts

double number_at(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<double>() : -1;
}

}  // namespace

result<pass_curve> parse_pass_curve(std::string_view text, const std::string& name) {
  const auto malformed = [&](const std::string& why) { return failure{errc::file_malformed, name + ": " + why}; };
  const auto parsed = parse_json<nlohmann::json>(text);
  if (!parsed) return malformed(parsed.error().context);
  const auto& json = *parsed;
  const bool is_table = json.is_object() && json.contains("cells");
  const char* const list = is_table ? "cells" : "passes";
  if (!json.is_object() || !json.contains(list) || !json[list].is_array() || json[list].empty()) {
    return malformed(
        "expected 'passes' (rows, logits, context, us) as a server keeps them, or the JSON of 'redline "
        "bench forward'");
  }
  pass_curve out{.name = name, .samples = {}, .mixture = {}};
  const char* const title = is_table ? "model" : "key";
  if (json.contains(title) && json[title].is_string()) out.name = json[title].get<std::string>();
  if (const auto at = json.find("mixture"); at != json.end()) {
    if (!at->is_object()) return malformed("mixture: expected an object");
    const double layers = number_at(*at, "layers"), experts = number_at(*at, "experts"), used = number_at(*at, "used");
    if (layers < 1 || layers > rows_max || experts < 1 || experts > rows_max || used < 1 || used > experts) {
      return malformed("mixture: expected layers, experts of each, and how many of these a row uses");
    }
    out.mixture = {static_cast<std::uint32_t>(layers), static_cast<std::uint32_t>(experts),
                   static_cast<std::uint32_t>(used)};
  }
  const auto touched_max = static_cast<double>(out.mixture.all());
  const bool last_only = json.value("logits", nlohmann::json("all")) == "last";
  for (const auto& pass : json[list]) {
    const std::string where = std::string(list) + "[" + std::to_string(out.samples.size()) + "]";
    if (!pass.is_object()) return malformed(where + ": expected an object");
    const double rows = number_at(pass, "rows"), context = number_at(pass, "context");
    const double us = is_table ? number_at(pass, "ms") * 1000 : number_at(pass, "us");
    const double logits = is_table ? (last_only ? 1 : rows) : number_at(pass, "logits");
    const double experts = pass.contains("experts") ? number_at(pass, "experts") : 0;
    if (experts < 0 || experts > touched_max) {
      return malformed(where + ": expected at most all experts of the 'mixture' that the file is of");
    }
    if (rows < 1 || rows > rows_max || context < 0 || context > rows_max || logits < 0 || logits > rows || us <= 0 ||
        us > us_max) {
      return malformed(where + ": expected rows of at least 1, logits of at most rows, a context and a time");
    }
    out.samples.push_back({cost::size_of_run(static_cast<std::uint64_t>(context), static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(logits)),
                           microseconds{std::max<std::int64_t>(1, std::llround(us))},
                           static_cast<std::uint64_t>(experts)});
  }
  return out;
}

result<pass_curve> read_pass_curve(const std::string& path) {
  auto text = read_whole(path);
  if (!text) return text.error();
  return parse_pass_curve(*text, path);
}

cost::cost_model fit_pass_curve(const pass_curve& curve) {
  cost::cost_model out(curve.mixture);
  for (int i = 0; i < fitting_rounds; ++i) {
    for (const auto& s : curve.samples) out.observe(s.size, s.took, s.experts);
  }
  return out;
}

}  // namespace redline::studies
