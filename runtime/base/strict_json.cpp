#include "runtime/base/strict_json.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/hex.hpp"

namespace redline {
namespace {

/// Builds the document from the parser's events.
template<class Json>
class builder {
 public:
  using number_integer_t = typename Json::number_integer_t;
  using number_unsigned_t = typename Json::number_unsigned_t;
  using number_float_t = typename Json::number_float_t;
  using string_t = typename Json::string_t;
  using binary_t = typename Json::binary_t;

  explicit builder(const json_limits& limits) : limits_(limits) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) { return add(value); }
  bool number_float(number_float_t value, const string_t&) { return add(value); }
  bool string(string_t& value) { return add(std::move(value)); }
  bool binary(binary_t&) { return refuse("binary values are not JSON"); }

  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    level& top = levels_.back();
    if (top.value.size() >= limits_.members_max) {
      return refuse("an object has more than " + std::to_string(limits_.members_max) + " members");
    }
    if (is_known(top, name)) return refuse("the member " + quote_bytes(name, 64) + " is repeated");
    top.name = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& why) {
    // The library's text begins with its own error number and a position.
    std::string_view text = why.what();
    if (const auto start = text.find(": "); start != text.npos) text.remove_prefix(start + 2);
    return refuse("at byte " + std::to_string(position) + ": " + escape_bytes(text, 200));
  }

  Json root;
  std::string reason;

 private:
  static constexpr bool is_ordered = std::is_same_v<Json, nlohmann::ordered_json>;

  struct level {
    Json value;
    std::string name;             // name of the member whose value comes next
    std::set<std::string> names;  // names of an ordered object, so that large ones are not searched for each member
  };

  static bool is_known(level& top, const string_t& name) {
    if constexpr (is_ordered) {
      return !top.names.insert(name).second;
    } else {
      return top.value.contains(name);
    }
  }

  bool refuse(std::string why) {
    if (reason.empty()) reason = std::move(why);
    return false;
  }

  bool count() {
    if (++values_count_ <= limits_.values_max) return true;
    return refuse("more than " + std::to_string(limits_.values_max) + " values");
  }

  bool open(Json empty) {
    if (levels_.size() >= limits_.depth_max) {
      return refuse("nested deeper than " + std::to_string(limits_.depth_max) + " levels");
    }
    if (!count()) return false;
    levels_.push_back({std::move(empty), {}, {}});
    return true;
  }

  bool close() {
    Json done = std::move(levels_.back().value);
    levels_.pop_back();
    place(std::move(done));
    return true;
  }

  bool add(Json value) {
    if (!count()) return false;
    place(std::move(value));
    return true;
  }

  void place(Json value) {
    if (levels_.empty()) {
      root = std::move(value);
      return;
    }
    level& top = levels_.back();
    if (top.value.is_array()) {
      top.value.template get_ref<typename Json::array_t&>().push_back(std::move(value));
      return;
    }
    auto& object = top.value.template get_ref<typename Json::object_t&>();
    if constexpr (is_ordered) {
      // The name is new, so the library's search for an equal one is skipped.
      static_cast<typename Json::object_t::Container&>(object).emplace_back(std::move(top.name), std::move(value));
    } else {
      object.emplace(std::move(top.name), std::move(value));
    }
  }

  const json_limits& limits_;
  std::size_t values_count_ = 0;
  std::vector<level> levels_;
};

}  // namespace

template<class Json>
result<Json> parse_json(std::string_view text, const json_limits& limits) {
  // The library takes a zero byte for the end, whatever follows. No document contains one, because strings escape it.
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    return failure{errc::invalid_argument, "not valid JSON: at byte " + std::to_string(zero + 1) + ": a zero byte"};
  }
  builder<Json> build(limits);
  if (Json::sax_parse(text.begin(), text.end(), &build)) return std::move(build.root);
  return failure{errc::invalid_argument, "not valid JSON: " + build.reason};
}

template result<nlohmann::json> parse_json(std::string_view text, const json_limits& limits);
template result<nlohmann::ordered_json> parse_json(std::string_view text, const json_limits& limits);

std::string dump_json(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string show_json(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  if (value.is_string()) return quote_bytes(value.get_ref<const std::string&>());
  return value.dump();
}

}  // namespace redline
