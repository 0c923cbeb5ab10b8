#pragma once

#include <string>
#include <vector>

#include "actors/http/routing/key_ring.hpp"

namespace redline::actors::cli {

/// The keys that a server's clients may use: those of --api-key, then those of --api-key-file (empty if there is none).
/// Fails if keys were configured and there are none, such as a file without keys or an empty variable, because every
/// client would then be served. Logs a warning if all users of the machine can read the file.
result<api_keys> load_client_keys(const std::vector<std::string>& keys, const std::string& file);

/// Reloads the keys into `ring`, which keeps its keys if that fails; the log says which happened. Answers in progress
/// continue, even for tenants whose keys were removed.
void reload_client_keys(key_ring& ring, const std::vector<std::string>& keys, const std::string& file);

}  // namespace redline::actors::cli
