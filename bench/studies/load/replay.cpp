#include "bench/studies/load/replay.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "actors/prompts/edit_prompt.hpp"
#include "bench/studies/common/json_file.hpp"

namespace redline::studies {

using json = nlohmann::ordered_json;

std::string script_of(std::span<const known_edit> edits) {
  json script = json::array();
  for (const known_edit& e : edits) {
    script.push_back({{"when", {actors::message_of(e.task)}}, {"say", actors::answer_of(e.task, e.after)}});
  }
  return script.dump();
}

result<script_file> script_file::write(std::span<const known_edit> edits) {
  std::string folder = (std::filesystem::temp_directory_path() / "redline-replay-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return failure{errc::io_error, folder + ": cannot be made: " + std::system_category().message(errno)};
  }
  script_file file(std::move(folder));
  REDLINE_TRY(write_json(file.path(), json::parse(script_of(edits))));
  return file;
}

script_file::~script_file() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace redline::studies
