#include "actors/http/openai/json.hpp"

#include <set>
#include <utility>
#include <vector>

namespace redline::api {
namespace {

/// Builds the document from the parser's events, so that limits hold while parsing, not after.
class builder {
 public:
  using number_integer_t = json::number_integer_t;
  using number_unsigned_t = json::number_unsigned_t;
  using number_float_t = json::number_float_t;
  using string_t = json::string_t;
  using binary_t = json::binary_t;

  explicit builder(const json_limits& limits) : limits_(limits) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(number_integer_t value) { return add(value); }
  bool number_unsigned(number_unsigned_t value) { return add(value); }
  bool number_float(number_float_t value, const string_t&) { return add(value); }
  bool string(string_t& value) { return add(std::move(value)); }
  bool binary(binary_t&) { return refuse("binary values are no JSON"); }

  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    auto& seen = levels_.back().names;
    if (seen.size() >= limits_.members_max) {
      return refuse("an object has more than " + std::to_string(limits_.members_max) + " members");
    }
    if (!seen.insert(name).second) return refuse("the member \"" + name.substr(0, 64) + "\" is repeated");
    levels_.back().name = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& why) {
    // The library's text holds an id and a position of its own before the sentence.
    std::string text = why.what();
    const auto start = text.find(": ");
    if (start != std::string::npos) text.erase(0, start + 2);
    return refuse("at byte " + std::to_string(position) + ": " + text.substr(0, 200));
  }

  json root;
  std::string reason;

 private:
  struct level {
    json value;
    std::string name;  // of the member whose value comes next
    std::set<std::string> names;
  };

  bool refuse(std::string why) {
    if (reason.empty()) reason = std::move(why);
    return false;
  }

  bool count() {
    if (++values_count_ <= limits_.values_max) return true;
    return refuse("more than " + std::to_string(limits_.values_max) + " values");
  }

  bool open(json empty) {
    if (levels_.size() >= limits_.depth_max) {
      return refuse("nested deeper than " + std::to_string(limits_.depth_max) + " levels");
    }
    if (!count()) return false;
    levels_.push_back({std::move(empty), {}, {}});
    return true;
  }

  bool close() {
    json done = std::move(levels_.back().value);
    levels_.pop_back();
    place(std::move(done));
    return true;
  }

  bool add(json value) {
    if (!count()) return false;
    place(std::move(value));
    return true;
  }

  void place(json value) {
    if (levels_.empty()) {
      root = std::move(value);
    } else if (auto& top = levels_.back(); top.value.is_array()) {
      top.value.get_ref<json::array_t&>().push_back(std::move(value));
    } else {
      // Names are known to differ, so the library's search for an equal one is skipped.
      static_cast<json::object_t::Container&>(top.value.get_ref<json::object_t&>())
          .emplace_back(std::move(top.name), std::move(value));
    }
  }

  const json_limits& limits_;
  std::size_t values_count_ = 0;
  std::vector<level> levels_;
};

}  // namespace

result<json> parse_json(std::string_view text, const json_limits& limits) {
  builder build(limits);
  if (json::sax_parse(text.begin(), text.end(), &build)) return std::move(build.root);
  return failure{errc::invalid_argument, "not valid JSON: " + build.reason};
}

std::string dump_json(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace redline::api
