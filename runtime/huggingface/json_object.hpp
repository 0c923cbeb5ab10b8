#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/base/strict_json.hpp"

namespace redline::huggingface {

/// Uses a search tree for members: a vocabulary has a few hundred thousand.
using json = nlohmann::json;

/// Parses a whole document strictly (runtime/base/strict_json); every failure starts with `file`.
result<json> parse_document(std::string_view text, const std::string& file);

/// Reads and parses a file of at most `bytes_max` bytes.
result<json> read_document(const std::string& path, std::uint64_t bytes_max);

/// An object of a document and its path, which failures name: "m/config.json: rope_scaling.factor: expected a number,
/// found "x"". A member that is null counts as absent. The document must outlive this.
class json_object {
 public:
  /// `path`: from the document's root, "" for the root itself. Fails if the value is not an object.
  static result<json_object> of(const json& value, std::string file, std::string path = {});

  [[nodiscard]] const json& value() const { return *value_; }
  /// nullptr if absent.
  [[nodiscard]] const json* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  /// The member, or a failure if it is absent or of another kind.
  [[nodiscard]] result<std::string> text(std::string_view name) const;
  [[nodiscard]] result<std::uint64_t> whole(std::string_view name, std::uint64_t least, std::uint64_t most) const;
  [[nodiscard]] result<double> positive(std::string_view name) const;
  [[nodiscard]] result<bool> flag(std::string_view name) const;
  [[nodiscard]] result<const json*> array(std::string_view name) const;
  [[nodiscard]] result<json_object> object(std::string_view name) const;

  /// The member, or `otherwise` if it is absent; another kind is still a failure.
  [[nodiscard]] result<std::string> text_or(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] result<double> positive_or(std::string_view name, double otherwise) const;
  [[nodiscard]] result<bool> flag_or(std::string_view name, bool otherwise) const;

  /// Formats "FILE: PATH.NAME: why", as file_malformed or unsupported_format.
  [[nodiscard]] failure malformed(std::string_view name, const std::string& why) const;
  [[nodiscard]] failure unsupported(std::string_view name, const std::string& why) const;

  [[nodiscard]] const std::string& file() const { return file_; }
  /// "PATH.NAME".
  [[nodiscard]] std::string path_of(std::string_view name) const;

 private:
  json_object(const json& value, std::string file, std::string path);
  /// The member, if `fits` accepts its kind.
  template<class Fits>
  result<const json*> checked(std::string_view name, std::string_view wanted, Fits fits) const;

  const json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace redline::huggingface
