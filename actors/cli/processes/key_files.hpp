#pragma once

#include <string>

#include "actors/messages/pool_messages.hpp"
#include "runtime/base/result.hpp"
#include "transport/zmq/zmq_bridge.hpp"
#include "transport/zmq/zmq_broker.hpp"

namespace redline::actors::cli {

/// A directory of CURVE keys: server, gateway and worker, each a .public and a .secret of one line of Z85; secrets with
/// mode 0600. A broker is the server. It lets in gateway.public as a gateway, worker.public as a worker, and of every
/// *.public in peers.d those whose name begins with "gateway" or "worker" in that role.
result<void> make_key_files(const std::string& directory);
result<void> load_broker_keys(const std::string& directory, transport::broker_options& options);
result<void> load_peer_keys(const std::string& directory, process_role role, transport::bridge_options& options);

}  // namespace redline::actors::cli
