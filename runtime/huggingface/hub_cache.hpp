#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::huggingface {

/// Where the hub's tools store downloads: $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
/// ~/.cache/huggingface/hub.
std::filesystem::path hub_cache_folder();

/// Whether this is "org/name" or "org/name:quant", as in model cards. The model need not exist.
[[nodiscard]] bool looks_like_hub_name(std::string_view name);

/// The GGUF file of a downloaded model: from the revision that `main` was at, else from the latest. "quant" is a part
/// of the file's name, ignoring case; without it the model must exist in only one form. For a model in several files it
/// is the first. Nothing is downloaded. The failure says what exists, or how to get the model.
result<std::string> find_in_hub_cache(const std::filesystem::path& cache, std::string_view name);

}  // namespace redline::huggingface
