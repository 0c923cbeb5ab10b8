#include "bench/studies/common/json_file.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "actors/cli/command.hpp"
#include "bench/studies/common/names.hpp"

namespace redline::studies {

result<void> write_json(const std::string& path, const nlohmann::ordered_json& what) {
  if (path.empty()) return {};
  // Names of models and files may contain bytes that are not UTF-8.
  const std::string text = what.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (path != "-") return write_whole(path, text);
  std::cout << text;
  return {};
}

}  // namespace redline::studies
