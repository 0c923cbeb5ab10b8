#pragma once

#include <string>
#include <vector>

#include "actors/http/routing/key_ring.hpp"

namespace redline::actors::cli {

/// The keys by which clients of a server show who they are: those of --api-key, then those of --api-key-file (empty:
/// there is none). Fails where keys were asked for and there are none, because then every client would be served: a
/// file without keys, a variable that is set but empty. Logs a warning where all users of the machine can read the file.
result<api_keys> load_client_keys(const std::vector<std::string>& keys, const std::string& file);

/// Loads them anew into `ring`, which keeps what it has where that fails; the log says which. What runs goes on, of
/// tenants whose keys are gone as well.
void reload_client_keys(key_ring& ring, const std::vector<std::string>& keys, const std::string& file);

}  // namespace redline::actors::cli
