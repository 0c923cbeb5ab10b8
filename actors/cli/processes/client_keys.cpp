#include "actors/cli/processes/client_keys.hpp"

#include <sys/stat.h>

#include <cstdlib>

#include "runtime/base/log.hpp"

namespace redline::actors::cli {
namespace {

constexpr const char* log_name = "keys";

void warn_of_readers(const std::string& file) {
  struct stat info {};
  if (file.empty() || ::stat(file.c_str(), &info) != 0 || (info.st_mode & S_IROTH) == 0) return;
  log_line(log_level::warning, log_name,
           "every user of this machine can read the API keys in " + file + "; run chmod o-r on it");
}

}  // namespace

result<api_keys> load_client_keys(const std::vector<std::string>& keys, const std::string& file) {
  REDLINE_TRY_ASSIGN(auto loaded, api_keys::load(keys, file));
  warn_of_readers(file);
  if (!loaded.empty()) return loaded;
  for (const char* name : {"REDLINE_API_KEY", "REDLINE_API_KEY_FILE"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value != '\0') continue;
    return failure{errc::file_malformed, std::string(name) +
                                             " is set but empty, and without keys every client would be served; give "
                                             "it a value, or unset it"};
  }
  return loaded;
}

void reload_client_keys(key_ring& ring, const std::vector<std::string>& keys, const std::string& file) {
  if (file.empty()) {
    return log_line(log_level::info, log_name, "SIGHUP: there is no --api-key-file to reload");
  }
  auto loaded = load_client_keys(keys, file);
  if (!loaded) {
    return log_line(log_level::error, log_name,
                    "SIGHUP: cannot reload the keys, which stay as they were: " + loaded.error().context);
  }
  const log_field counts[] = {{"keys", loaded->size()}, {"tenants", loaded->tenants_count()}};
  log_line(log_level::info, log_name, "SIGHUP: reloaded " + file, counts);
  ring.replace(std::move(*loaded));
}

}  // namespace redline::actors::cli
