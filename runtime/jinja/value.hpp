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

#include "runtime/base/pause_point.hpp"
#include "runtime/base/result.hpp"

namespace redline::jinja {

/// The failure of a template, thrown only within the engine: an interpreter without exceptions would carry a result
/// through every node and hide the language. chat_template catches it and returns a failure.
struct error {
  std::string what;
  errc code = errc::invalid_template;
  std::uint32_t line = 0;  // 0 means the statement being rendered
};

/// Limits for a template. Templates come with model files and are untrusted programs.
struct template_limits {
  std::size_t source_bytes_max = std::size_t{1} << 20;
  /// Each evaluated node, visited element and 64 bytes of processed text count as one step, about 0.1 us each.
  std::uint64_t steps_max = 5'000'000;
  std::size_t output_bytes_max = std::size_t{16} << 20;
  /// Approximate size of the live text, lists and dicts of one rendering.
  std::size_t memory_bytes_max = std::size_t{128} << 20;
  /// Nodes under evaluation at one time, including macro calls. 150 need less than 256 KiB of stack.
  std::uint32_t depth_max = 150;
  /// Nested lists and dicts, even in the input.
  std::uint32_t nesting_max = 100;
};

/// Counts the resources used by one rendering and throws error beyond the limits. Outlives every value made under it.
class render_budget {
 public:
  explicit render_budget(const template_limits& limits) : limits_(limits) {}
  render_budget(const render_budget&) = delete;
  render_budget& operator=(const render_budget&) = delete;

  void step(std::uint64_t count = 1) {
    pause_point();
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

  [[nodiscard]] const template_limits& limits() const { return limits_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  [[noreturn]] void throw_steps() const;
  [[noreturn]] void throw_memory() const;
  [[noreturn]] void throw_depth() const;

  template_limits limits_;
  std::uint64_t steps_ = 0;
  std::size_t bytes_ = 0;
  std::uint32_t depth_ = 0;
};

/// One level of recursion, counted during the object's lifetime.
class depth_guard {
 public:
  // The constructor may throw after counting; that is harmless because the rendering is over.
  explicit depth_guard(render_budget& budget) : budget_(budget) { budget_.enter(); }
  ~depth_guard() { budget_.leave(); }
  depth_guard(const depth_guard&) = delete;
  depth_guard& operator=(const depth_guard&) = delete;

 private:
  render_budget& budget_;
};

/// An amount of memory, counted during the object's lifetime.
class memory_charge {
 public:
  memory_charge(render_budget& budget, std::size_t bytes) : budget_(budget), bytes_(bytes) { budget_.acquire(bytes_); }
  ~memory_charge() { budget_.release(bytes_); }
  memory_charge(const memory_charge&) = delete;
  memory_charge& operator=(const memory_charge&) = delete;
  void grow(std::size_t bytes) {
    budget_.acquire(bytes);
    bytes_ += bytes;
  }

 private:
  render_budget& budget_;
  std::size_t bytes_;
};

struct list_object;
struct dict_object;
class object_base;

/// A Python value as templates see it. Immutable except for the attributes of a namespace; copies share data.
class value {
 public:
  /// In the order of the variant's alternatives.
  enum class kind { undefined, none, boolean, integer, real, string, list, dict, object };

  struct undefined_value {
    std::shared_ptr<const std::string> why;  // message for its use
  };
  struct none_value {};
  struct text_object {
    text_object(render_budget& budget, std::string t, bool safe);
    std::string text;
    bool is_safe;
    memory_charge charge;
  };

  value() : state_(none_value{}) {}
  static value undefined(std::string why);
  static value boolean(bool b) { return value(b); }
  static value integer(std::int64_t i) { return value(i); }
  static value real(double d) { return value(d); }
  static value string(render_budget& budget, std::string text);
  /// Text that a template marks as safe (markupsafe's Markup): text added to it is escaped for HTML.
  static value safe_string(render_budget& budget, std::string text);
  static value list(render_budget& budget, std::vector<value> items) {
    return sequence(budget, std::move(items), false);
  }
  static value tuple(render_budget& budget, std::vector<value> items) {
    return sequence(budget, std::move(items), true);
  }
  /// If two keys are equal the last value wins, at the first key's position.
  static value dict(render_budget& budget, std::vector<std::pair<value, value>> entries);
  static value object(std::shared_ptr<object_base> object) { return value(std::move(object)); }
  /// Throws error if the document is nested too deeply.
  static value from_json(render_budget& budget, const nlohmann::ordered_json& json, std::uint32_t depth = 0);

  [[nodiscard]] kind type() const { return static_cast<kind>(state_.index()); }
  [[nodiscard]] bool is_undefined() const { return type() == kind::undefined; }
  [[nodiscard]] bool is_none() const { return type() == kind::none; }
  [[nodiscard]] bool is_string() const { return type() == kind::string; }
  [[nodiscard]] bool is_safe() const { return is_string() && std::get<text_ref>(state_)->is_safe; }
  [[nodiscard]] bool is_list() const { return type() == kind::list; }
  [[nodiscard]] bool is_dict() const { return type() == kind::dict; }
  [[nodiscard]] bool is_integral() const { return type() == kind::integer || type() == kind::boolean; }
  [[nodiscard]] bool is_number() const { return is_integral() || type() == kind::real; }

  // Each accessor requires the kind it names.
  [[nodiscard]] bool as_boolean() const { return std::get<bool>(state_); }
  [[nodiscard]] const std::string& text() const { return std::get<text_ref>(state_)->text; }
  [[nodiscard]] const list_object& as_list() const { return *std::get<list_ref>(state_); }
  [[nodiscard]] const dict_object& as_dict() const { return *std::get<dict_ref>(state_); }
  [[nodiscard]] const std::shared_ptr<object_base>& as_object() const { return std::get<object_ref>(state_); }
  /// boolean or integer
  [[nodiscard]] std::int64_t as_integer() const;
  /// any number
  [[nodiscard]] double as_real() const;

  /// Python's type name, for messages.
  [[nodiscard]] std::string_view type_name() const;
  /// The depth of nested containers; 0 for scalars.
  [[nodiscard]] std::uint32_t nesting() const;
  [[nodiscard]] bool truth() const;
  /// `is`: the same object, or equal scalars of one kind.
  [[nodiscard]] bool same_as(const value& other) const;
  /// Throws "... is undefined" if undefined.
  const value& defined() const;

 private:
  using text_ref = std::shared_ptr<const text_object>;
  using list_ref = std::shared_ptr<const list_object>;
  using dict_ref = std::shared_ptr<const dict_object>;
  using object_ref = std::shared_ptr<object_base>;

  template<class T>
  explicit value(T state) : state_(std::move(state)) {}
  static value sequence(render_budget& budget, std::vector<value> items, bool is_tuple);

  std::variant<undefined_value, none_value, bool, std::int64_t, double, text_ref, list_ref, dict_ref, object_ref>
      state_;
};

/// A list, or a tuple, which only prints and compares differently. Python's ranges, views and generators are lists.
struct list_object {
  std::vector<value> items;
  bool is_tuple;
  std::uint32_t nesting;
  memory_charge charge;
};

struct dict_object {
  dict_object(render_budget& budget, std::vector<std::pair<value, value>> from);
  /// nullptr if absent.
  [[nodiscard]] const value* find(render_budget& budget, const value& key) const;
  [[nodiscard]] const value* find(std::string_view key) const;

  std::vector<std::pair<value, value>> entries;
  std::uint32_t nesting = 1;

 private:
  std::unordered_map<std::string_view, std::size_t> by_text_;  // refers to the keys of entries
  memory_charge charge_;
};

/// Builds text under the budget.
class text_builder {
 public:
  explicit text_builder(render_budget& budget, std::size_t bytes_max = SIZE_MAX)
      : charge_(budget, 0), budget_(budget), bytes_max_(bytes_max) {}
  void append(std::string_view more);
  /// str(value)
  void append_value(const value& v);
  [[nodiscard]] const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  memory_charge charge_;
  render_budget& budget_;
  std::size_t bytes_max_;
};

/// str(value) and repr(value).
std::string to_str(render_budget& budget, const value& v);
void append_repr(text_builder& out, render_budget& budget, const value& v);
bool equal(render_budget& budget, const value& a, const value& b);
/// a < b; throws if Python does not order them.
bool less(render_budget& budget, const value& a, const value& b);
/// item in container
bool contains(render_budget& budget, const value& container, const value& item);
/// len(value); throws for a value without length.
std::size_t count_elements(const value& v);
/// The values that `for` visits: items, keys or code points.
std::vector<value> iterate(render_budget& budget, const value& v);

struct json_style {
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool has_indent = false;
  std::string indent;  // for one level
  bool ascii_only = false;
  bool sort_keys = false;
};
/// json.dumps
void append_json(text_builder& out, render_budget& budget, const value& v, const json_style& style,
                 std::size_t level = 0);

}  // namespace redline::jinja
