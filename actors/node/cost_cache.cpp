#include "actors/node/cost_cache.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/hash.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/replacement_file.hpp"

namespace redline::actors {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t costs_max = 64;
constexpr std::uintmax_t file_bytes_max = 64 * 1024;
constexpr std::uint64_t number_max = 3'600'000'000;  // an hour in microseconds; more rows or tokens than there are

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// A name for the file. The key itself is compared after loading.
std::string file_name(const std::string& key) { return to_hex(fnv1a().add(key).value()); }

std::optional<std::uint64_t> number_at(const nlohmann::json& cost, const char* name) {
  const auto at = cost.find(name);
  if (at == cost.end() || !at->is_number_unsigned() || at->get<std::uint64_t>() > number_max) return std::nullopt;
  return at->get<std::uint64_t>();
}

}  // namespace

cost_cache::cost_cache(std::string folder, std::string key) : folder_(std::move(folder)), key_(std::move(key)) {}

std::string cost_cache::usual_folder() {
  if (std::string own = variable("REDLINE_CACHE_DIR"); !own.empty()) return own;
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty()) return caches + "/redline";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/redline";
  return "";
}

std::string cost_cache::path() const { return folder_ + "/pass-costs-" + file_name(key_) + ".json"; }

std::optional<std::vector<pass_cost>> cost_cache::load() const {
  if (folder_.empty()) return std::nullopt;
  std::error_code ignored;
  if (const auto bytes = fs::file_size(path(), ignored); ignored || bytes > file_bytes_max) return std::nullopt;
  std::ifstream file(path());
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || json.value("key", nlohmann::json()) != key_) return std::nullopt;
  const auto list = json.find("passes");
  if (list == json.end() || !list->is_array() || list->empty() || list->size() > costs_max) return std::nullopt;
  std::vector<pass_cost> costs;
  for (const auto& cost : *list) {
    if (!cost.is_object()) return std::nullopt;
    const auto rows = number_at(cost, "rows"), logits = number_at(cost, "logits"), context = number_at(cost, "context"),
               us = number_at(cost, "us");
    const auto experts = cost.contains("experts") ? number_at(cost, "experts") : 0;
    if (!rows || !logits || !context || !us || !experts) return std::nullopt;
    costs.push_back({static_cast<std::uint32_t>(*rows), static_cast<std::uint32_t>(*logits),
                     static_cast<std::uint32_t>(*context), *us, *experts});
  }
  return costs;
}

result<void> cost_cache::store(const std::vector<pass_cost>& costs, const cost::mixture_shape& mixture) const {
  if (folder_.empty()) return {};
  nlohmann::ordered_json json{{"key", key_}};
  if (!mixture.is_dense()) {
    json["mixture"] = {{"layers", mixture.layers}, {"experts", mixture.experts}, {"used", mixture.used}};
  }
  json["passes"] = nlohmann::ordered_json::array();
  for (const pass_cost& c : costs) {
    auto& pass = json["passes"].emplace_back(
        nlohmann::ordered_json{{"rows", c.rows}, {"logits", c.logits}, {"context", c.context}, {"us", c.took_us}});
    if (c.experts_count != 0) pass["experts"] = c.experts_count;
  }
  std::error_code failed;
  fs::create_directories(folder_, failed);
  return replace_file(path(), json.dump(1) + "\n");
}

}  // namespace redline::actors
