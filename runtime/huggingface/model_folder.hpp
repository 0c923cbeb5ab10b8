#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/huggingface/json_object.hpp"
#include "runtime/huggingface/safetensors.hpp"

namespace redline::huggingface {

/// A model as the Hugging Face hub stores it: documents, and tensors in model.safetensors or in shards that
/// model.safetensors.index.json names. Tensor files are mapped; views into them are valid as long as this object
/// exists.
class model_folder {
 public:
  /// A tensor and the file that contains it.
  struct place {
    const safetensors_file* file;
    const safetensor* tensor;
  };

  /// Opens everything that conversion reads. Failures name the file: one that is required and missing, one that is
  /// broken, an index that names a file outside the folder, or shards whose tensors differ from the index.
  static result<model_folder> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const json& config() const { return config_; }
  [[nodiscard]] const json& tokenizer() const { return tokenizer_; }
  /// nullptr if the folder has none.
  [[nodiscard]] const json* tokenizer_config() const { return tokenizer_config_ ? &*tokenizer_config_ : nullptr; }
  [[nodiscard]] const json* generation_config() const { return generation_config_ ? &*generation_config_ : nullptr; }
  [[nodiscard]] const std::optional<std::string>& chat_template() const { return chat_template_; }

  [[nodiscard]] const std::map<std::string, place, std::less<>>& tensors() const { return tensors_; }
  /// Every file that was read.
  [[nodiscard]] const std::vector<std::string>& sources() const { return sources_; }
  /// The path of a file in this folder.
  [[nodiscard]] std::string operator/(std::string_view name) const;

 private:
  explicit model_folder(std::string path) : path_(std::move(path)) {}
  result<json> read(std::string_view name);
  result<std::optional<json>> read_if_there(std::string_view name);
  result<void> read_documents();
  result<void> read_processor_template();
  result<void> open_tensors();
  result<void> open_shards();
  result<void> add_tensors(const std::string& name);

  std::string path_;
  json config_;
  json tokenizer_;
  std::optional<json> tokenizer_config_;
  std::optional<json> generation_config_;
  std::optional<std::string> chat_template_;
  std::vector<std::shared_ptr<const safetensors_file>> files_;
  std::map<std::string, place, std::less<>> tensors_;
  std::vector<std::string> sources_;
};

}  // namespace redline::huggingface
