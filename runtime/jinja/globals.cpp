#include <algorithm>
#include <ctime>
#include <iterator>
#include <memory>
#include <utility>

#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/interpreter.hpp"

namespace redline::jinja {
namespace {

constexpr std::int64_t range_max = 100'000;  // as in Jinja's sandbox
constexpr std::size_t date_format_bytes_max = 1024;

value raise_exception(native_call& call) {
  const auto [message] = bind_arguments(call, {"message"});
  // The template refuses the conversation: the client's error, not the template's.
  throw error{message == nullptr ? "" : to_str(call.budget, *message), errc::invalid_argument};
}

value strftime_now(native_call& call) {
  const auto [format] = bind_arguments(call, {"format"});
  const std::string& text = text_argument(call, format, "format");
  if (text.empty()) return value::string(call.budget, "");
  if (text.size() > date_format_bytes_max) throw error{"expected a date format of at most 1024 bytes"};
  const auto seconds = static_cast<std::time_t>(call.engine.now());
  std::tm when{};
  if (gmtime_r(&seconds, &when) == nullptr) throw error{"expected a time that can be shown as a date"};
  char buffer[4096];
  const std::size_t length = std::strftime(buffer, sizeof buffer, text.c_str(), &when);
  return value::string(call.budget, std::string(buffer, length));
}

value make_range(native_call& call) {
  const auto [first, second, third] = bind_arguments(call, {"start", "stop", "step"});
  if (first == nullptr) throw error{"expected at least one argument for range()"};
  const bool only_stop = second == nullptr;
  const std::int64_t start = only_stop ? 0 : integer_argument(call, first, 0);
  const std::int64_t stop = integer_argument(call, only_stop ? first : second, 0);
  const std::int64_t step = integer_argument(call, third, 1);
  if (step == 0) throw error{"expected a step of range() other than 0"};
  std::vector<value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(items.size()) >= range_max) throw error{"expected a range of at most 100000 numbers"};
    items.push_back(value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return value::list(call.budget, std::move(items));
}

using entries = std::vector<std::pair<value, value>>;

/// dict(mapping or pairs, **more)
entries dict_entries(native_call& call) {
  entries out;
  if (call.arguments.positional.size() > 1) {
    throw error{"`" + std::string(call.name) + "` takes at most one positional argument"};
  }
  for (const value& from : call.arguments.positional) {
    if (from.defined().is_dict()) {
      out = from.as_dict().entries;
      continue;
    }
    for (const value& pair : iterate(call.budget, from)) {
      std::vector<value> parts = iterate(call.budget, pair);
      if (parts.size() != 2) throw error{"expected pairs to make a dict from"};
      out.emplace_back(std::move(parts[0]), std::move(parts[1]));
    }
  }
  for (auto& [name, v] : call.arguments.keyword) {
    out.emplace_back(value::string(call.budget, name), std::move(v));
  }
  return out;
}

value make_dict(native_call& call) { return value::dict(call.budget, dict_entries(call)); }

value make_namespace(native_call& call) {
  const auto space = std::make_shared<namespace_object>();
  for (auto& [name, v] : dict_entries(call)) {
    if (!name.is_string()) throw error{"expected names for a namespace, found " + std::string(name.type_name())};
    space->set(call.budget, name.text(), std::move(v));
  }
  call.engine.keep(space);
  return value::object(space);
}

/// joiner(sep): returns nothing when it is first called, then the separator.
class joiner_object final : public object_base {
 public:
  explicit joiner_object(value separator) : separator_(std::move(separator)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Joiner"; }
  [[nodiscard]] bool is_callable() const override { return true; }
  value call(interpreter& engine, call_arguments arguments) override {
    if (!arguments.positional.empty() || !arguments.keyword.empty()) throw error{"a joiner takes no arguments"};
    return std::exchange(is_used_, true) ? separator_ : value::string(engine.budget(), "");
  }

 private:
  value separator_;
  bool is_used_ = false;
};

value make_joiner(native_call& call) {
  const auto [separator] = bind_arguments(call, {"sep"});
  return value::object(
      std::make_shared<joiner_object>(separator == nullptr ? value::string(call.budget, ", ") : *separator));
}

constexpr std::pair<std::string_view, native_function> globals[] = {
    {"dict", make_dict},
    {"joiner", make_joiner},
    {"namespace", make_namespace},
    {"range", make_range},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

native_function find_global(std::string_view name) {
  const auto found =
      std::find_if(std::begin(globals), std::end(globals), [&](const auto& g) { return g.first == name; });
  return found == std::end(globals) ? nullptr : found->second;
}

}  // namespace redline::jinja
