#include "actors/cli/processes/key_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/processes/process_commands.hpp"

namespace redline::actors::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t key_characters = 40;

result<void> write_key(const fs::path& path, const std::string& key, mode_t mode) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0)
    return failure{errc::io_error, "cannot create " + path.string() + "; an existing key is never overwritten"};
  const std::string line = key + "\n";
  const bool good = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (::close(fd) != 0 || !good) return failure{errc::io_error, "cannot write " + path.string()};
  return {};
}

result<std::string> read_key(const fs::path& path, bool secret) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return failure{errc::file_unreadable, "cannot read " + path.string()};
  // Root may give a key's group access, as Kubernetes does for secrets; it knows the group better than this process.
  const mode_t others = info.st_uid == 0 && ::geteuid() != 0 ? 037 : 077;
  if (secret && (info.st_mode & others) != 0) {
    return failure{errc::invalid_argument, "expected mode 0600, or 0640 if root owns it, for " + path.string() +
                                               ", found it readable by others"};
  }
  REDLINE_TRY_ASSIGN(std::string key, read_whole(path.string()));
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r' || key.back() == ' ')) key.pop_back();
  if (key.size() != key_characters) {
    return failure{errc::file_malformed,
                   "expected a key of 40 characters in " + path.string() + ", found " + std::to_string(key.size())};
  }
  return key;
}

}  // namespace

result<void> make_key_files(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return failure{errc::io_error, directory + ": " + error.message()};
  ::chmod(directory.c_str(), 0700);
  for (const char* who : {"server", "gateway", "worker"}) {
    const auto keys = transport::make_curve_keys();
    REDLINE_TRY(write_key(fs::path(directory) / (std::string(who) + ".secret"), keys.secret_key, 0600));
    REDLINE_TRY(write_key(fs::path(directory) / (std::string(who) + ".public"), keys.public_key, 0644));
  }
  return {};
}

namespace {

result<transport::curve_keys> read_pair(const fs::path& dir, const std::string& who) {
  transport::curve_keys own;
  REDLINE_TRY_ASSIGN(own.public_key, read_key(dir / (who + ".public"), false));
  REDLINE_TRY_ASSIGN(own.secret_key, read_key(dir / (who + ".secret"), true));
  return own;
}

result<void> allow(const fs::path& file, transport::broker_options& options) {
  const std::string name = file.stem().string();
  process_role role = process_role::worker;
  if (name.starts_with("gateway")) {
    role = process_role::gateway;
  } else if (!name.starts_with("worker")) {
    return failure{
        errc::invalid_argument,
        file.string() + ": expected a file name that begins with the role of the key's owner, 'gateway' or 'worker'"};
  }
  REDLINE_TRY_ASSIGN(const std::string key, read_key(file, false));
  options.allowed_public_keys.push_back(key);
  options.key_roles[key] = static_cast<std::uint8_t>(role);
  return {};
}

}  // namespace

result<void> load_broker_keys(const std::string& directory, transport::broker_options& options) {
  const fs::path dir(directory);
  REDLINE_TRY_ASSIGN(options.own_keys, read_pair(dir, "server"));
  for (const char* who : {"gateway.public", "worker.public"}) {
    if (fs::exists(dir / who)) REDLINE_TRY(allow(dir / who, options));
  }
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir / "peers.d", none)) {
    if (entry.path().extension() == ".public") REDLINE_TRY(allow(entry.path(), options));
  }
  return {};
}

result<void> load_peer_keys(const std::string& directory, process_role role, transport::bridge_options& options) {
  const fs::path dir(directory);
  REDLINE_TRY_ASSIGN(options.own_keys, read_pair(dir, role == process_role::gateway ? "gateway" : "worker"));
  REDLINE_TRY_ASSIGN(options.server_public_key, read_key(dir / "server.public", false));
  return {};
}

void add_keygen(CLI::App& app, int& exit_code) {
  auto directory = std::make_shared<std::string>();
  const command c(app, "keygen", "Make CURVE keys for processes that communicate over TCP");
  c.add("DIRECTORY", *directory, "The folder to create and write the keys to").require().any_folder();
  c.on_run(exit_code, [directory] {
    if (const auto made = make_key_files(*directory); !made) return report(made);
    std::cout << "The keys are in " << *directory
              << ". Brokers need server.secret, gateways need gateway.secret, workers "
                 "need worker.secret, and all of them need the .public files.\n";
    return 0;
  });
}

}  // namespace redline::actors::cli
