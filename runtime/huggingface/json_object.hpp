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

/// Members are found by a search tree: a vocabulary has some hundred thousand.
using json = nlohmann::json;

/// A whole document, read strictly (runtime/base/strict_json); every failure starts with `file`.
result<json> parse_document(std::string_view text, const std::string& file);

/// The same of a file that may have at most `bytes_max` bytes.
result<json> read_document(const std::string& path, std::uint64_t bytes_max);

/// An object of a document and where it stands, so that failures say it: "m/config.json: rope_scaling.factor: expected
/// a number, found "x"". A member that is null counts as absent. The document must outlive this.
class json_object {
 public:
  /// `path`: from the document's root, "" for the root itself. A failure when the value is no object.
  static result<json_object> of(const json& value, std::string file, std::string path = {});

  [[nodiscard]] const json& value() const { return *value_; }
  /// nullptr when absent.
  [[nodiscard]] const json* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  /// The member, or a failure when it is absent or of another kind.
  [[nodiscard]] result<std::string> text(std::string_view name) const;
  [[nodiscard]] result<std::uint64_t> whole(std::string_view name, std::uint64_t least, std::uint64_t most) const;
  [[nodiscard]] result<double> positive(std::string_view name) const;
  [[nodiscard]] result<bool> flag(std::string_view name) const;
  [[nodiscard]] result<const json*> array(std::string_view name) const;
  [[nodiscard]] result<json_object> object(std::string_view name) const;

  /// What stands in for an absent member; one of another kind is still a failure.
  [[nodiscard]] result<std::string> text_or(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] result<double> positive_or(std::string_view name, double otherwise) const;
  [[nodiscard]] result<bool> flag_or(std::string_view name, bool otherwise) const;

  /// "FILE: PATH.NAME: why", as file_malformed and as unsupported_format.
  [[nodiscard]] failure malformed(std::string_view name, const std::string& why) const;
  [[nodiscard]] failure unsupported(std::string_view name, const std::string& why) const;

  [[nodiscard]] const std::string& file() const { return file_; }
  /// "PATH.NAME".
  [[nodiscard]] std::string path_of(std::string_view name) const;

 private:
  json_object(const json& value, std::string file, std::string path);
  /// The member if it is of the kind that `fits` tells.
  template<class Fits>
  result<const json*> checked(std::string_view name, std::string_view wanted, Fits fits) const;

  const json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace redline::huggingface
