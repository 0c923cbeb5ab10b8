#include "actors/cli/phrase_hint.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "actors/cli/server_address.hpp"
#include "actors/prompts/known_phrases.hpp"
#include "runtime/base/hex.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::size_t phrases_max = 8;
constexpr std::size_t phrase_bytes_max = 160;
constexpr std::chrono::seconds hint_patience{2};  // a hint is not worth a longer wait

/// The phrases that /v1/models lists.
std::vector<std::string> phrases_of_server(const std::string& url, const std::string& api_key) {
  using nlohmann::json;
  auto server = server_address::parse(url, api_key);
  if (!server) return {};
  server->url.target += "/v1/models";
  const auto answer = transport::http_get(server->url, server->headers,
                                          {.connect_timeout = hint_patience, .silence_timeout = hint_patience});
  if (!answer || answer->status != 200) return {};
  const json models = json::parse(answer->body, nullptr, false);
  static const json::json_pointer place("/data/0/meta/known_phrases");
  std::vector<std::string> phrases;
  if (models.is_discarded() || !models.contains(place)) return phrases;
  for (const json& one : models[place]) {
    if (one.is_string()) phrases.push_back(one.get<std::string>());
  }
  return phrases;
}

std::vector<std::string> phrases_of_file(const std::string& path) {
  const auto model = gguf::gguf_file::open(path);
  return model ? known_phrases(**model) : std::vector<std::string>();
}

}  // namespace

std::string phrase_hint(std::span<const std::string> phrases) {
  if (phrases.empty()) return {};
  std::string text = "this demonstration model knows few phrases; try one like:\n";
  for (const auto& phrase : phrases.first(std::min(phrases.size(), phrases_max))) {
    text += "  " + escape_bytes(phrase, phrase_bytes_max) + "\n";
  }
  return text;
}

std::string phrase_hint_of(const std::string& model_path, const std::string& server, const std::string& api_key) {
  return phrase_hint(server.empty() ? phrases_of_file(model_path) : phrases_of_server(server, api_key));
}

}  // namespace redline::actors::cli
