#include "transport/zmq/zmq_endpoint.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "runtime/base/assert.hpp"

namespace redline::transport {
namespace {

bool is_ipc(const std::string& endpoint) { return endpoint.starts_with("ipc://"); }
std::string path_of_ipc(const std::string& endpoint) { return endpoint.substr(std::string("ipc://").size()); }

/// A directory that others cannot enter protects the ipc socket in it. Both sides check it, because the directory's
/// owner can replace the socket.
result<void> check_ipc_directory(const std::string& endpoint) {
  const std::string path = path_of_ipc(endpoint);
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) {
    return failure{errc::io_error, "the directory of " + endpoint + " does not exist"};
  }
  const std::string expected =
      "expected a directory that only this user can enter (mode 0700) for " + endpoint + ", found " + directory;
  if (info.st_uid != ::geteuid()) {
    return failure{errc::invalid_argument, expected + " owned by user " + std::to_string(info.st_uid)};
  }
  if ((info.st_mode & 077) != 0) return failure{errc::invalid_argument, expected + " accessible to other users"};
  return {};
}

}  // namespace

result<int> lock_endpoint(const std::string& endpoint) {
  if (!is_ipc(endpoint)) return -1;
  const std::string path = path_of_ipc(endpoint) + ".lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) {
    return failure{errc::io_error, path + ": cannot be opened: " + std::system_category().message(errno)};
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  return failure{errc::invalid_argument,
                 "expected a separate endpoint for each server, found another process listening at " + endpoint};
}

result<void> check_endpoint(const std::string& endpoint, bool has_keys, bool insecure_plaintext) {
  if (is_ipc(endpoint)) return check_ipc_directory(endpoint);
  if (!endpoint.starts_with("tcp://")) {
    return failure{errc::invalid_argument,
                   "expected an endpoint tcp://HOST:PORT or ipc://PATH, found '" + endpoint + "'"};
  }
  if (!has_keys && !insecure_plaintext) {
    return failure{errc::invalid_argument, "expected CURVE keys for " + endpoint +
                                               " (make them with 'redline keygen'), or --insecure-plaintext"};
  }
  return {};
}

curve_keys make_curve_keys() {
  char public_key[41];
  char secret_key[41];
  REDLINE_ASSERT(zmq_curve_keypair(public_key, secret_key) == 0, "libzmq was built without CURVE");
  return {public_key, secret_key};
}

}  // namespace redline::transport
