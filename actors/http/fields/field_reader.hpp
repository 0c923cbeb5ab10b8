#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/fields/json.hpp"

namespace redline::api {

/// Reads members of one JSON object. It keeps the first error; values read afterwards may be meaningless, so callers
/// read everything and then check `error`. A null member counts as absent, because SDKs send unset fields that way.
class field_reader {
 public:
  /// path: the object's own name in the request, empty for the request itself. Both arguments must outlive the reader,
  /// as must `error`, which several readers share.
  field_reader(const json& object, std::string path, std::optional<api_error>& error);

  /// The member, or null if it is absent or null.
  [[nodiscard]] const json* find(std::string_view name) const;
  [[nodiscard]] std::string path_of(std::string_view name) const;
  /// Members that are not null and were not read. The names live as long as the object.
  using named_value = std::pair<std::string_view, const json*>;
  [[nodiscard]] std::vector<named_value> unread() const;

  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name, double min, double max);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max);
  std::optional<std::string> text(std::string_view name, std::size_t bytes_max);
  const json* object(std::string_view name);
  const json* array(std::string_view name, std::size_t count_max);

  /// For Redline's own objects: a member outside `known` is an error that suggests the nearest known name.
  void allow_only(std::span<const std::string_view> known);

  void refuse(std::string_view name, std::string message, std::string code = {});
  void refuse_type(std::string_view name, std::string_view wanted, const json& found);

 private:
  const json& object_;
  mutable std::vector<std::string> read_;  // names asked for
  std::string path_;
  std::optional<api_error>& error_;
};

/// "name[index]"
std::string indexed(std::string_view name, std::size_t index);

/// "a string", "an array", ...
std::string_view kind_of(const json& value);

/// The entry of `known` that `text` was most likely meant to be; empty if none is near.
std::string_view nearest(std::string_view text, std::span<const std::string_view> known);

/// Parses a request's body, which must be one JSON object.
checked<json> parse_body(std::string_view body);

/// A signed or unsigned integer that fits; nullopt for anything else, including floats.
std::optional<std::int64_t> as_integer(const json& value);

}  // namespace redline::api
