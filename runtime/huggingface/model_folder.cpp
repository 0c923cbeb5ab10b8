#include "runtime/huggingface/model_folder.hpp"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "runtime/base/hex.hpp"
#include "runtime/base/mapped_file.hpp"

namespace redline::huggingface {
namespace {

constexpr std::uint64_t document_bytes_max = 256U << 20;  // a tokenizer.json with 150 000 tokens has 11 MB
constexpr std::uint64_t template_bytes_max = 1U << 20;
constexpr std::size_t shards_max = 1024;

constexpr std::string_view whole_name = "model.safetensors";
constexpr std::string_view index_name = "model.safetensors.index.json";

bool is_there(const std::string& path) {
  std::error_code unreadable;  // opening the file reports the reason
  return std::filesystem::exists(path, unreadable);
}

/// Whether the name is a file of this folder, or a link: the hub's cache consists of links.
bool is_plain_name(std::string_view name) {
  return name.ends_with(".safetensors") && name.size() <= 255 && name.front() != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

result<std::string> read_template(const std::string& path) {
  REDLINE_TRY_ASSIGN(const auto file, mapped_file::open(path));
  const auto bytes = file->bytes();
  if (bytes.size() > template_bytes_max) {
    return failure{errc::file_malformed, path + ": expected at most " + std::to_string(template_bytes_max) +
                                             " bytes, found " + std::to_string(bytes.size())};
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Reads from the index which file each tensor is in.
result<std::map<std::string, std::string>> read_weight_map(const json_object& index) {
  REDLINE_TRY_ASSIGN(const json_object weight_map, index.object("weight_map"));
  std::map<std::string, std::string> out;
  for (const auto& [tensor, file] : weight_map.value().items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>())) {
      return index.malformed("weight_map", "tensor " + quote_bytes(tensor) +
                                               ": expected the name of a .safetensors file in this folder, found " +
                                               show_json(file));
    }
    out.emplace(tensor, file.get<std::string>());
  }
  return out;
}

}  // namespace

result<model_folder> model_folder::open(const std::string& path) {
  model_folder out(path);
  REDLINE_TRY(out.read_documents());
  REDLINE_TRY(out.open_tensors());
  return out;
}

std::string model_folder::operator/(std::string_view name) const {
  return (std::filesystem::path(path_) / name).string();
}

result<json> model_folder::read(std::string_view name) {
  sources_.push_back(*this / name);
  return read_document(sources_.back(), document_bytes_max);
}

result<std::optional<json>> model_folder::read_if_there(std::string_view name) {
  if (!is_there(*this / name)) return std::optional<json>();
  REDLINE_TRY_ASSIGN(json document, read(name));
  return std::optional(std::move(document));
}

result<void> model_folder::read_documents() {
  REDLINE_TRY_ASSIGN(config_, read("config.json"));
  REDLINE_TRY_ASSIGN(tokenizer_, read("tokenizer.json"));
  REDLINE_TRY_ASSIGN(tokenizer_config_, read_if_there("tokenizer_config.json"));
  REDLINE_TRY_ASSIGN(generation_config_, read_if_there("generation_config.json"));
  const std::string chat_template = *this / "chat_template.jinja";
  if (!is_there(chat_template)) return read_processor_template();
  sources_.push_back(chat_template);
  REDLINE_TRY_ASSIGN(chat_template_.emplace(), read_template(chat_template));
  return {};
}

/// Vision models have a processor around their tokenizer, and some store the template with it.
result<void> model_folder::read_processor_template() {
  if (tokenizer_config_ && tokenizer_config_->contains("chat_template")) return {};
  REDLINE_TRY_ASSIGN(const std::optional<json> document, read_if_there("chat_template.json"));
  if (!document) return {};
  REDLINE_TRY_ASSIGN(const json_object object, json_object::of(*document, *this / "chat_template.json"));
  REDLINE_TRY_ASSIGN(chat_template_.emplace(), object.text("chat_template"));
  return {};
}

result<void> model_folder::open_tensors() {
  if (is_there(*this / whole_name)) return add_tensors(std::string(whole_name));
  if (is_there(*this / index_name)) return open_shards();
  return failure{errc::file_unreadable, path_ + ": expected " + std::string(whole_name) + " or " +
                                            std::string(index_name) + ", found neither"};
}

result<void> model_folder::open_shards() {
  REDLINE_TRY_ASSIGN(const json document, read(index_name));
  REDLINE_TRY_ASSIGN(const json_object index, json_object::of(document, *this / index_name));
  REDLINE_TRY_ASSIGN(const auto file_of, read_weight_map(index));
  std::set<std::string> names;
  for (const auto& [tensor, file] : file_of) names.insert(file);
  if (names.empty() || names.size() > shards_max) {
    return index.malformed("weight_map", "expected tensors in 1 to " + std::to_string(shards_max) + " files, found " +
                                             std::to_string(names.size()));
  }
  for (const std::string& name : names) REDLINE_TRY(add_tensors(name));
  for (const auto& [tensor, file] : file_of) {
    const auto it = tensors_.find(tensor);
    if (it == tensors_.end() || it->second.file->path() != *this / file) {
      return index.malformed("weight_map", "tensor " + quote_bytes(tensor) + ": expected in " + quote_bytes(file) +
                                               ", found " +
                                               (it == tensors_.end() ? "nowhere" : "in " + it->second.file->path()));
    }
  }
  return {};
}

result<void> model_folder::add_tensors(const std::string& name) {
  sources_.push_back(*this / name);
  REDLINE_TRY_ASSIGN(const auto file, safetensors_file::open(sources_.back()));
  files_.push_back(file);
  for (const auto& [tensor, view] : file->tensors()) {
    if (tensors_.try_emplace(tensor, place{file.get(), &view}).second) continue;
    return failure{errc::file_malformed, file->path() + ": " + quote_bytes(tensor) +
                                             ": expected in one file, found also in " + tensors_[tensor].file->path()};
  }
  return {};
}

}  // namespace redline::huggingface
