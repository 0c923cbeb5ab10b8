#include "runtime/huggingface/hub_cache.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "runtime/gguf/split_name.hpp"

namespace redline::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t files_shown_max = 20;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool is_name(std::string_view part) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  return !part.empty() && part.front() != '.' && std::all_of(part.begin(), part.end(), allowed);
}

struct hub_name {
  std::string_view model;  // "org/name"
  std::string_view quant;
};
hub_name parts_of(std::string_view name) {
  const std::size_t colon = name.find(':');
  return {name.substr(0, colon), colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1)};
}

/// The snapshot that refs/main names, else the most recently written one; empty if there is none.
fs::path snapshot_of(const fs::path& repository) {
  std::error_code ignored;
  std::string revision;
  if (std::ifstream in(repository / "refs" / "main"); in >> revision && is_name(revision)) {
    const fs::path named = repository / "snapshots" / revision;
    if (fs::is_directory(named, ignored)) return named;
  }
  fs::path latest;
  fs::file_time_type when{};
  for (const auto& entry : fs::directory_iterator(repository / "snapshots", ignored)) {
    const auto written = entry.last_write_time(ignored);
    if (!entry.is_directory(ignored) || (!latest.empty() && written <= when)) continue;
    latest = entry.path();
    when = written;
  }
  return latest;
}

/// The models in a snapshot, ordered by name: only first parts, and no image projectors.
std::vector<std::string> models_in(const fs::path& snapshot) {
  std::vector<std::string> out;
  std::error_code problem;
  for (fs::recursive_directory_iterator it(snapshot, problem), end; !problem && it != end; it.increment(problem)) {
    const std::string file = it->path().filename().string();
    const auto part = gguf::parse_split_name(file);
    if (!lower(file).ends_with(".gguf") || lower(file).find("mmproj") != std::string::npos) continue;
    if (part && part->number != 1) continue;
    out.push_back(fs::relative(it->path(), snapshot, problem).string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), files_shown_max); ++i) out += (i == 0 ? "" : ", ") + names[i];
  return names.size() > files_shown_max ? out + ", ..." : out;
}

}  // namespace

fs::path hub_cache_folder() {
  const auto set = [](const char* name) { return std::getenv(name) != nullptr && *std::getenv(name) != '\0'; };
  if (set("HF_HUB_CACHE")) return std::getenv("HF_HUB_CACHE");
  if (set("HF_HOME")) return fs::path(std::getenv("HF_HOME")) / "hub";
  if (set("XDG_CACHE_HOME")) return fs::path(std::getenv("XDG_CACHE_HOME")) / "huggingface" / "hub";
  return fs::path(set("HOME") ? std::getenv("HOME") : ".") / ".cache" / "huggingface" / "hub";
}

bool looks_like_hub_name(std::string_view name) {
  const auto [model, quant] = parts_of(name);
  const std::size_t slash = model.find('/');
  if (slash == std::string_view::npos || !is_name(model.substr(0, slash)) || !is_name(model.substr(slash + 1))) {
    return false;
  }
  if (lower(model).ends_with(".gguf")) return false;  // a path that does not exist
  return name.find(':') == std::string_view::npos || is_name(quant);
}

result<std::string> find_in_hub_cache(const fs::path& cache, std::string_view name) {
  if (!looks_like_hub_name(name)) {
    return failure{errc::invalid_argument, "expected org/name or org/name:quant, found '" + std::string(name) + "'"};
  }
  const auto [model, quant] = parts_of(name);
  const std::size_t slash = model.find('/');
  const fs::path repository =
      cache / ("models--" + std::string(model.substr(0, slash)) + "--" + std::string(model.substr(slash + 1)));
  const fs::path snapshot = snapshot_of(repository);
  const std::string get_it =
      "; download it with `hf download " + std::string(model) + "`, or set HF_HUB_CACHE to another folder";
  if (snapshot.empty()) {
    return failure{errc::file_unreadable, std::string(model) + ": no such file, and the hub's cache " + cache.string() +
                                              " does not have it" + get_it};
  }
  const auto all = models_in(snapshot);
  if (all.empty()) {
    return failure{errc::file_unreadable, std::string(model) + ": " + snapshot.string() +
                                              " has no GGUF file; `redline convert` makes one from a model's folder"};
  }
  std::vector<std::string> fitting;
  for (const auto& file : all) {
    if (lower(file).find(lower(quant)) != std::string::npos) fitting.push_back(file);
  }
  if (fitting.size() == 1) return (snapshot / fitting.front()).string();
  if (fitting.empty()) {
    return failure{errc::file_unreadable, std::string(name) + ": none of its files has '" + std::string(quant) +
                                              "' in its name; the files are " + list_of(all)};
  }
  return failure{errc::invalid_argument, std::string(name) + ": several of its files match: " + list_of(fitting) +
                                             "; name one, as in " + std::string(model) + ":Q8_0"};
}

}  // namespace redline::huggingface
