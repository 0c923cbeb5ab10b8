#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::huggingface {

/// Where the hub's tools keep what they download: $HF_HUB_CACHE, else $HF_HOME/hub, else
/// $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub.
std::filesystem::path hub_cache_folder();

/// "org/name" or "org/name:quant", as model cards write it; nothing is said of whether there is one.
[[nodiscard]] bool looks_like_hub_name(std::string_view name);

/// The GGUF file of a model that was downloaded: of the revision that `main` was at, else of the latest. "quant" is
/// part of the file's name, whatever its case; without one the model must be there in one form only. Of a model in
/// several files the first. Nothing is downloaded. The failure says what there is, or how to get it.
result<std::string> find_in_hub_cache(const std::filesystem::path& cache, std::string_view name);

}  // namespace redline::huggingface
