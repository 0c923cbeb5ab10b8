#include "runtime/huggingface/json_object.hpp"

#include <cmath>
#include <utility>

#include "runtime/base/mapped_file.hpp"

namespace redline::huggingface {
namespace {

/// The hub's files are less than ten levels deep, and a vocabulary has a few hundred thousand members.
constexpr json_limits document_limits = {.depth_max = 32, .values_max = SIZE_MAX, .members_max = SIZE_MAX};

}  // namespace

result<json> parse_document(std::string_view text, const std::string& file) {
  auto parsed = redline::parse_json<json>(text, document_limits);
  if (!parsed) return failure{errc::file_malformed, file + ": " + parsed.error().context};
  return parsed;
}

result<json> read_document(const std::string& path, std::uint64_t bytes_max) {
  REDLINE_TRY_ASSIGN(const auto file, mapped_file::open(path));
  const auto bytes = file->bytes();
  if (bytes.size() > bytes_max) {
    return failure{errc::file_malformed, path + ": expected at most " + std::to_string(bytes_max) + " bytes, found " +
                                             std::to_string(bytes.size())};
  }
  return parse_document({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

json_object::json_object(const json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

result<json_object> json_object::of(const json& value, std::string file, std::string path) {
  if (value.is_object()) return json_object(value, std::move(file), std::move(path));
  const std::string where = path.empty() ? file : file + ": " + path;
  return failure{errc::file_malformed, where + ": expected an object, found " + show_json(value)};
}

const json* json_object::find(std::string_view name) const {
  const auto it = value_->find(name);
  return it == value_->end() || it->is_null() ? nullptr : &*it;
}

template<class Fits>
result<const json*> json_object::checked(std::string_view name, std::string_view wanted, Fits fits) const {
  const json* found = find(name);
  if (found == nullptr) return malformed(name, "expected " + std::string(wanted) + ", found nothing");
  if (!fits(*found)) return malformed(name, "expected " + std::string(wanted) + ", found " + show_json(*found));
  return found;
}

result<std::string> json_object::text(std::string_view name) const {
  REDLINE_TRY_ASSIGN(const json* found, checked(name, "a string", [](const json& v) { return v.is_string(); }));
  return found->get<std::string>();
}

result<std::uint64_t> json_object::whole(std::string_view name, std::uint64_t least, std::uint64_t most) const {
  const std::string wanted = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  REDLINE_TRY_ASSIGN(const json* found, checked(name, wanted, [&](const json& v) {
                       if (!v.is_number_unsigned()) return false;
                       const auto n = v.get<std::uint64_t>();
                       return n >= least && n <= most;
                     }));
  return found->get<std::uint64_t>();
}

result<double> json_object::positive(std::string_view name) const {
  REDLINE_TRY_ASSIGN(const json* found, checked(name, "a positive number", [](const json& v) {
                       // Checked as a float, which will store it.
                       const auto x = v.is_number() ? static_cast<float>(v.get<double>()) : 0;
                       return std::isfinite(x) && x > 0;
                     }));
  return found->get<double>();
}

result<bool> json_object::flag(std::string_view name) const {
  REDLINE_TRY_ASSIGN(const json* found, checked(name, "true or false", [](const json& v) { return v.is_boolean(); }));
  return found->get<bool>();
}

result<const json*> json_object::array(std::string_view name) const {
  return checked(name, "an array", [](const json& v) { return v.is_array(); });
}

result<json_object> json_object::object(std::string_view name) const {
  REDLINE_TRY_ASSIGN(const json* found, checked(name, "an object", [](const json& v) { return v.is_object(); }));
  return json_object(*found, file_, path_of(name));
}

result<std::string> json_object::text_or(std::string_view name, std::string_view otherwise) const {
  return has(name) ? text(name) : std::string(otherwise);
}

result<double> json_object::positive_or(std::string_view name, double otherwise) const {
  return has(name) ? positive(name) : otherwise;
}

result<bool> json_object::flag_or(std::string_view name, bool otherwise) const {
  return has(name) ? flag(name) : otherwise;
}

std::string json_object::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

failure json_object::malformed(std::string_view name, const std::string& why) const {
  return {errc::file_malformed, file_ + ": " + path_of(name) + ": " + why};
}

failure json_object::unsupported(std::string_view name, const std::string& why) const {
  return {errc::unsupported_format, file_ + ": " + path_of(name) + ": " + why};
}

}  // namespace redline::huggingface
