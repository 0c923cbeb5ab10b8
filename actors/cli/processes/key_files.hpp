#pragma once

#include <string>

#include "actors/messages/pool_messages.hpp"
#include "runtime/base/result.hpp"
#include "transport/zmq/zmq_bridge.hpp"
#include "transport/zmq/zmq_broker.hpp"

namespace redline::actors::cli {

/// A directory of CURVE keys for server, gateway and worker, each a .public and a .secret file with one line of Z85;
/// secrets have mode 0600. A broker uses the server's keys. It admits gateway.public as a gateway, worker.public as a
/// worker, and each *.public in peers.d whose name begins with "gateway" or "worker" in that role.
result<void> make_key_files(const std::string& directory);
result<void> load_broker_keys(const std::string& directory, transport::broker_options& options);
result<void> load_peer_keys(const std::string& directory, process_role role, transport::bridge_options& options);

}  // namespace redline::actors::cli
