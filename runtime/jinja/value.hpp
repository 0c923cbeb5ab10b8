#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::text {

/// How a template fails, thrown between the engine's own files only: an interpreter without exceptions would carry a
/// result through every node and hide the language. chat_template catches it and returns a failure.
struct jinja_error {
  std::string what;
  errc code = errc::invalid_template;
  std::uint32_t line = 0;  // 0: the statement being rendered
};

/// What a template may use. Templates come with model files and are untrusted programs.
struct jinja_limits {
  std::size_t source_bytes_max = std::size_t{1} << 20;
  /// Nodes evaluated, elements visited and each 64 bytes of text touched count as one step; about 0.1 us each.
  std::uint64_t steps_max = 5'000'000;
  std::size_t output_bytes_max = std::size_t{16} << 20;
  /// Live text, lists and dicts of one rendering, approximately.
  std::size_t memory_bytes_max = std::size_t{128} << 20;
  /// Nodes under evaluation at one time, macro calls included. 150 need less than 256 KiB of stack.
  std::uint32_t depth_max = 150;
  /// Lists and dicts inside each other, also in the input.
  std::uint32_t nesting_max = 100;
};

/// Counts what one rendering has used and throws jinja_error beyond the limits. Outlives every value made under it.
class jinja_budget {
 public:
  explicit jinja_budget(const jinja_limits& limits) : limits_(limits) {}
  jinja_budget(const jinja_budget&) = delete;
  jinja_budget& operator=(const jinja_budget&) = delete;

  void step(std::uint64_t count = 1) {
    steps_ += count;
    if (steps_ > limits_.steps_max) throw_steps();
  }
  void touch(std::size_t bytes) { step(1 + bytes / 64); }
  void acquire(std::size_t bytes) {
    if (bytes > limits_.memory_bytes_max - bytes_) throw_memory();
    bytes_ += bytes;
  }
  void release(std::size_t bytes) noexcept { bytes_ -= bytes; }
  void enter() {
    if (++depth_ > limits_.depth_max) throw_depth();
  }
  void leave() noexcept { --depth_; }

  [[nodiscard]] const jinja_limits& limits() const { return limits_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  [[noreturn]] void throw_steps() const;
  [[noreturn]] void throw_memory() const;
  [[noreturn]] void throw_depth() const;

  jinja_limits limits_;
  std::uint64_t steps_ = 0;
  std::size_t bytes_ = 0;
  std::uint32_t depth_ = 0;
};

/// One level of recursion, for as long as it lives.
class jinja_depth {
 public:
  // The constructor may throw after counting; the count then no longer matters, the rendering is over.
  explicit jinja_depth(jinja_budget& budget) : budget_(budget) { budget_.enter(); }
  ~jinja_depth() { budget_.leave(); }
  jinja_depth(const jinja_depth&) = delete;
  jinja_depth& operator=(const jinja_depth&) = delete;

 private:
  jinja_budget& budget_;
};

/// Memory that is counted for as long as it lives.
class jinja_charge {
 public:
  jinja_charge(jinja_budget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) { budget_.acquire(bytes_); }
  ~jinja_charge() { budget_.release(bytes_); }
  jinja_charge(const jinja_charge&) = delete;
  jinja_charge& operator=(const jinja_charge&) = delete;
  void grow(std::size_t bytes) {
    budget_.acquire(bytes);
    bytes_ += bytes;
  }

 private:
  jinja_budget& budget_;
  std::size_t bytes_;
};

struct jinja_list;
struct jinja_dict;
class jinja_object;

/// A Python value as templates see it. Immutable but for the attributes of a namespace; copying shares.
class jinja_value {
 public:
  /// In the order of the variant's alternatives.
  enum class kind { undefined, none, boolean, integer, real, string, list, dict, object };

  struct undefined_value {
    std::shared_ptr<const std::string> why;  // what to say when it is used
  };
  struct none_value {};
  struct text_object {
    text_object(jinja_budget& budget, std::string t);
    std::string text;
    jinja_charge charge;
  };

  jinja_value() : state_(none_value{}) {}
  static jinja_value undefined(std::string why);
  static jinja_value boolean(bool b) { return jinja_value(b); }
  static jinja_value integer(std::int64_t i) { return jinja_value(i); }
  static jinja_value real(double d) { return jinja_value(d); }
  static jinja_value string(jinja_budget& budget, std::string text);
  static jinja_value list(jinja_budget& budget, std::vector<jinja_value> items) {
    return sequence(budget, std::move(items), false);
  }
  static jinja_value tuple(jinja_budget& budget, std::vector<jinja_value> items) {
    return sequence(budget, std::move(items), true);
  }
  /// Of two equal keys the last value wins, at the first's place.
  static jinja_value dict(jinja_budget& budget, std::vector<std::pair<jinja_value, jinja_value>> entries);
  static jinja_value object(std::shared_ptr<jinja_object> object) { return jinja_value(std::move(object)); }
  /// Fails by jinja_error when the document nests too deeply.
  static jinja_value from_json(jinja_budget& budget, const nlohmann::ordered_json& json, std::uint32_t depth = 0);

  [[nodiscard]] kind type() const { return static_cast<kind>(state_.index()); }
  [[nodiscard]] bool is_undefined() const { return type() == kind::undefined; }
  [[nodiscard]] bool is_none() const { return type() == kind::none; }
  [[nodiscard]] bool is_string() const { return type() == kind::string; }
  [[nodiscard]] bool is_list() const { return type() == kind::list; }
  [[nodiscard]] bool is_dict() const { return type() == kind::dict; }
  [[nodiscard]] bool is_integral() const { return type() == kind::integer || type() == kind::boolean; }
  [[nodiscard]] bool is_number() const { return is_integral() || type() == kind::real; }

  // Each only for the kind it names.
  [[nodiscard]] bool as_boolean() const { return std::get<bool>(state_); }
  [[nodiscard]] const std::string& text() const { return std::get<text_ref>(state_)->text; }
  [[nodiscard]] const jinja_list& as_list() const { return *std::get<list_ref>(state_); }
  [[nodiscard]] const jinja_dict& as_dict() const { return *std::get<dict_ref>(state_); }
  [[nodiscard]] const std::shared_ptr<jinja_object>& as_object() const { return std::get<object_ref>(state_); }
  /// boolean or integer
  [[nodiscard]] std::int64_t as_integer() const;
  /// any number
  [[nodiscard]] double as_real() const;

  /// Python's type name, for messages.
  [[nodiscard]] std::string_view type_name() const;
  /// How many containers are inside each other; 0 for scalars.
  [[nodiscard]] std::uint32_t nesting() const;
  [[nodiscard]] bool truth() const;
  /// `is`: the same object, or equal scalars of one kind.
  [[nodiscard]] bool same_as(const jinja_value& other) const;
  /// Throws "... is undefined" when undefined.
  const jinja_value& defined() const;

 private:
  using text_ref = std::shared_ptr<const text_object>;
  using list_ref = std::shared_ptr<const jinja_list>;
  using dict_ref = std::shared_ptr<const jinja_dict>;
  using object_ref = std::shared_ptr<jinja_object>;

  template<class T>
  explicit jinja_value(T state) : state_(std::move(state)) {}
  static jinja_value sequence(jinja_budget& budget, std::vector<jinja_value> items, bool is_tuple);

  std::variant<undefined_value, none_value, bool, std::int64_t, double, text_ref, list_ref, dict_ref, object_ref>
      state_;
};

/// A list, or a tuple, which only prints and compares differently. Ranges, views and generators of Python are lists
/// here.
struct jinja_list {
  std::vector<jinja_value> items;
  bool is_tuple;
  std::uint32_t nesting;
  jinja_charge charge;
};

struct jinja_dict {
  jinja_dict(jinja_budget& budget, std::vector<std::pair<jinja_value, jinja_value>> from);
  /// nullptr when absent.
  [[nodiscard]] const jinja_value* find(jinja_budget& budget, const jinja_value& key) const;
  [[nodiscard]] const jinja_value* find(std::string_view key) const;

  std::vector<std::pair<jinja_value, jinja_value>> entries;
  std::uint32_t nesting = 1;

 private:
  std::unordered_map<std::string_view, std::size_t> by_text_;  // into the keys of entries
  jinja_charge charge_;
};

/// Grows text under the budget.
class jinja_text_builder {
 public:
  explicit jinja_text_builder(jinja_budget& budget, std::size_t bytes_max = SIZE_MAX)
      : charge_(budget, 0), budget_(budget), bytes_max_(bytes_max) {}
  void append(std::string_view more);
  /// str(value)
  void append_value(const jinja_value& value);
  [[nodiscard]] const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  jinja_charge charge_;
  jinja_budget& budget_;
  std::size_t bytes_max_;
};

/// str(value) and repr(value).
std::string jinja_str(jinja_budget& budget, const jinja_value& value);
void jinja_repr(jinja_text_builder& out, jinja_budget& budget, const jinja_value& value);
bool jinja_equal(jinja_budget& budget, const jinja_value& a, const jinja_value& b);
/// a < b; throws when Python does not order them.
bool jinja_less(jinja_budget& budget, const jinja_value& a, const jinja_value& b);
/// item in container
bool jinja_contains(jinja_budget& budget, const jinja_value& container, const jinja_value& item);
/// len(value); throws for what has none.
std::size_t jinja_length(const jinja_value& value);
/// What `for` visits: items, keys or code points.
std::vector<jinja_value> jinja_iterate(jinja_budget& budget, const jinja_value& value);

struct json_style {
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool has_indent = false;
  std::string indent;  // of one level
  bool ascii_only = false;
  bool sort_keys = false;
};
/// json.dumps
void jinja_to_json(jinja_text_builder& out, jinja_budget& budget, const jinja_value& value, const json_style& style,
                   std::size_t level = 0);

}  // namespace redline::text
