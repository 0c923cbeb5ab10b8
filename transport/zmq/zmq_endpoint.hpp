#pragma once

#include <string>

#include "runtime/base/result.hpp"

namespace redline::transport {

/// CURVE keys as Z85 text (40 characters each).
struct curve_keys {
  std::string public_key;
  std::string secret_key;
};
/// A fresh key pair.
curve_keys make_curve_keys();

/// Whether this process may listen at or dial `endpoint`: tcp://HOST:PORT needs keys, unless plaintext is asked for by
/// name, and ipc://PATH a directory that only this user can enter.
result<void> check_endpoint(const std::string& endpoint, bool has_keys, bool insecure_plaintext);

/// libzmq takes a bound ipc path away from its owner: a lock beside it, held as long as its descriptor is open, says
/// that it is taken. -1 for endpoints of other kinds.
result<int> lock_endpoint(const std::string& endpoint);

}  // namespace redline::transport
