#pragma once

#include <string>

#include "runtime/base/result.hpp"
#include "transport/zmq_fabric.hpp"

namespace redline::actors::cli {

/// A directory of CURVE keys: server.public, server.secret, worker.public, worker.secret, each one line of Z85; secrets
/// with mode 0600. The server lets in the keys of worker.public and of every *.public in workers.d; a key there whose
/// name begins with "target" or "draft" may be used in that role only.
result<void> make_key_files(const std::string& directory);
result<void> load_server_keys(const std::string& directory, transport::bridge_options& options);
result<void> load_client_keys(const std::string& directory, transport::bridge_options& options);

}  // namespace redline::actors::cli
