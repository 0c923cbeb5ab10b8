#include "bench/studies/load/load_trace.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "runtime/base/hash.hpp"

namespace redline::studies {
namespace {

using json = nlohmann::ordered_json;

constexpr double seconds_max = 1e6;
constexpr std::uint64_t tokens_max = 1 << 20;
constexpr std::size_t requests_max = 1 << 20;

/// Short words, most of which are one token in most vocabularies. The same seed gives the same beginning.
std::string made_up_prompt(std::string_view seed, std::uint64_t tokens) {
  static constexpr std::string_view words[] = {" the", " of", " and", " in", " to", " a",  " is", " for",
                                               " on",  " it", " as",  " at", " be", " by", " or", " if"};
  std::mt19937_64 random(fnv1a().add(seed).value());
  std::string text;
  for (std::uint64_t i = 0; i < tokens; ++i) text += words[random() % std::size(words)];
  return text;
}

/// Reads the members of a line and records the first error.
class line_reader {
 public:
  line_reader(const json& line, std::string where) : line_(line), where_(std::move(where)) {}
  [[nodiscard]] bool has(const char* field) const { return line_.contains(field); }
  double number(const char* field, double usual, double max) {
    const auto it = line_.find(field);
    if (it == line_.end()) return usual;
    if (it->is_number() && it->get<double>() >= 0 && it->get<double>() <= max) return it->get<double>();
    refuse(field, "a number from 0 to " + std::to_string(static_cast<std::uint64_t>(max)));
    return usual;
  }
  std::uint64_t count(const char* field, std::uint64_t max) {
    const auto it = line_.find(field);
    if (it != line_.end() && it->is_number_unsigned() && it->get<std::uint64_t>() >= 1 &&
        it->get<std::uint64_t>() <= max) {
      return it->get<std::uint64_t>();
    }
    refuse(field, "a count from 1 to " + std::to_string(max));
    return 1;
  }
  std::string text(const char* field) {
    const auto it = line_.find(field);
    if (it == line_.end()) return {};
    if (it->is_string()) return it->get<std::string>();
    refuse(field, "a string");
    return {};
  }
  void refuse(const std::string& field, const std::string& wanted) {
    if (problem.empty()) problem = where_ + ", \"" + field + "\": expected " + wanted;
  }
  std::string problem;

 private:
  const json& line_;
  std::string where_;
};

result<planned_request> parse_line(std::string_view text, const std::string& where, double speed) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object()) return failure{errc::file_malformed, where + ": expected a JSON object"};
  line_reader in(line, where);
  planned_request r;
  if (!in.has("at")) in.refuse("at", "the seconds when it is due");
  r.due = in.number("at", 0, seconds_max) / speed;
  r.think = in.number("think", 0, seconds_max) / speed;
  r.tenant = in.text("tenant");
  r.session = in.text("session");
  json body = {{"temperature", in.number("temperature", 0, 2)}, {"max_tokens", in.count("max_tokens", tokens_max)}};
  const int questions = int{in.has("messages")} + int{in.has("prompt")} + int{in.has("prompt_tokens")};
  if (questions != 1) in.refuse("prompt", "exactly one of \"messages\", \"prompt\" and \"prompt_tokens\"");
  std::string path = "/v1/completions";
  if (in.has("messages")) {
    if (!line["messages"].is_array()) in.refuse("messages", "an array");
    body["messages"] = line["messages"];
    path = "/v1/chat/completions";
  } else if (in.has("prompt")) {
    body["prompt"] = in.text("prompt");
  } else {
    const std::string seed = r.session.empty() ? where : "session " + r.session;
    body["prompt"] = made_up_prompt(seed, in.count("prompt_tokens", tokens_max));
  }
  if (!in.problem.empty()) return failure{errc::file_malformed, in.problem};
  r.given = http_question{path, body.dump()};
  // The same question gets the same answer.
  r.item = "trace " + std::to_string(fnv1a().add(r.given->body).value());
  return r;
}

}  // namespace

result<std::vector<planned_request>> parse_trace(std::string_view lines, const std::string& name, double speed) {
  std::vector<planned_request> all;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const auto line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    REDLINE_TRY_ASSIGN(auto one, parse_line(line, name + ", line " + std::to_string(number), speed));
    all.push_back(std::move(one));
    if (all.size() > requests_max) {
      return failure{errc::file_malformed, name + ": expected at most " + std::to_string(requests_max) + " requests"};
    }
  }
  if (all.empty()) return failure{errc::file_malformed, name + ": expected a request, found none"};
  std::ranges::stable_sort(all, {}, &planned_request::due);
  return all;
}

std::vector<planned_request> share_of_trace(std::vector<planned_request> all, std::size_t i, std::size_t agents) {
  std::size_t number = 0;
  std::erase_if(all, [&](const planned_request& r) {
    const std::uint64_t whose = r.session.empty() ? number++ : fnv1a().add(r.session).value();
    return whose % agents != i;
  });
  return all;
}

result<tenant_doors> tenant_doors::make(const std::string& url, const std::string& api_key, std::string_view keys) {
  tenant_doors doors;
  REDLINE_TRY_ASSIGN(doors.own_, server_address::parse(url, api_key));
  for (std::size_t number = 1; !keys.empty(); ++number) {
    const auto end = std::min(keys.find('\n'), keys.size());
    auto line = keys.substr(0, end);
    keys.remove_prefix(std::min(end + 1, keys.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == line.size()) {
      return failure{errc::file_malformed, "tenants' keys, line " + std::to_string(number) + ": expected TENANT:KEY"};
    }
    REDLINE_TRY_ASSIGN(doors.by_tenant_[std::string(line.substr(0, colon))],
                       server_address::parse(url, std::string(line.substr(colon + 1))));
  }
  return doors;
}

const server_address& tenant_doors::of(const std::string& tenant) const {
  const auto at = by_tenant_.find(tenant);
  return at == by_tenant_.end() ? own_ : at->second;
}

std::vector<std::string> tenant_doors::tenants() const {
  std::vector<std::string> names;
  for (const auto& [name, door] : by_tenant_) names.push_back(name);
  return names;
}

}  // namespace redline::studies
