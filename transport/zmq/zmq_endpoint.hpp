#pragma once

#include <string>

#include "runtime/base/result.hpp"

namespace redline::transport {

/// CURVE keys as Z85 text (40 characters each).
struct curve_keys {
  std::string public_key;
  std::string secret_key;
};
/// Makes a new key pair.
curve_keys make_curve_keys();

/// Whether this process may listen at or dial `endpoint`: tcp://HOST:PORT needs keys unless plaintext is requested
/// explicitly, and ipc://PATH a directory that only this user can enter.
result<void> check_endpoint(const std::string& endpoint, bool has_keys, bool insecure_plaintext);

/// Locks an ipc endpoint, because libzmq takes a bound ipc path away from its owner. The lock is a file next to the
/// path and lasts while the returned descriptor is open. Returns -1 for endpoints of other kinds.
result<int> lock_endpoint(const std::string& endpoint);

}  // namespace redline::transport
