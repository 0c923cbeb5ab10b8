#include <algorithm>
#include <ctime>
#include <iterator>
#include <memory>
#include <utility>

#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/interpreter.hpp"

namespace redline::jinja {
namespace {

constexpr std::int64_t range_max = 100'000;  // as Jinja's sandbox has it
constexpr std::size_t date_format_bytes_max = 1024;

value raise_exception(native_call& call) {
  const auto [message] = bind_arguments(call, {"message"});
  // The template refuses the conversation: the client's mistake, not the template's.
  throw error{message == nullptr ? "" : to_str(call.budget, *message), errc::invalid_argument};
}

value strftime_now(native_call& call) {
  const auto [format] = bind_arguments(call, {"format"});
  const std::string& text = text_argument(call, format, "format");
  if (text.empty()) return value::string(call.budget, "");
  if (text.size() > date_format_bytes_max) throw error{"wanted a date format of at most 1024 bytes"};
  const auto seconds = static_cast<std::time_t>(call.engine.now());
  std::tm when{};
  if (gmtime_r(&seconds, &when) == nullptr) throw error{"wanted a time that a calendar can hold"};
  char buffer[4096];
  const std::size_t length = std::strftime(buffer, sizeof buffer, text.c_str(), &when);
  return value::string(call.budget, std::string(buffer, length));
}

value make_range(native_call& call) {
  const auto [first, second, third] = bind_arguments(call, {"start", "stop", "step"});
  if (first == nullptr) throw error{"wanted at least one argument of range()"};
  const bool only_stop = second == nullptr;
  const std::int64_t start = only_stop ? 0 : integer_argument(call, first, 0);
  const std::int64_t stop = integer_argument(call, only_stop ? first : second, 0);
  const std::int64_t step = integer_argument(call, third, 1);
  if (step == 0) throw error{"wanted a step other than 0 of range()"};
  std::vector<value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(items.size()) >= range_max) throw error{"wanted a range of at most 100000 numbers"};
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
      if (parts.size() != 2) throw error{"wanted pairs to make a dict from"};
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
    if (!name.is_string()) throw error{"wanted names for a namespace, found " + std::string(name.type_name())};
    space->set(call.budget, name.text(), std::move(v));
  }
  call.engine.keep(space);
  return value::object(space);
}

/// joiner(separator): nothing when called first, then the separator.
class joiner final : public object_base {
 public:
  explicit joiner(value separator) : separator_(std::move(separator)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Joiner"; }
  [[nodiscard]] std::uint32_t nesting() const override { return separator_.nesting() + 1; }
  [[nodiscard]] bool is_callable() const override { return true; }
  value call(interpreter& engine, call_arguments) override {
    if (std::exchange(used_, true)) return separator_;
    return value::string(engine.budget(), "");
  }

 private:
  value separator_;
  bool used_ = false;
};

/// cycler(a, b, ...): next(), current and reset().
class cycler final : public object_base {
 public:
  explicit cycler(value items) : items_(std::move(items)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Cycler"; }
  [[nodiscard]] std::uint32_t nesting() const override { return items_.nesting() + 1; }
  value attribute(interpreter& engine, std::string_view name) override {
    if (name == "current") return current();
    const native_function native = name == "next" ? next : name == "reset" ? reset : nullptr;
    if (native == nullptr) return object_base::attribute(engine, name);
    return value::object(
        std::make_shared<bound_function>(native, std::string(name), value::object(shared_from_this())));
  }

 private:
  [[nodiscard]] const value& current() const { return items_.as_list().items[at_]; }
  static value next(native_call& call) {
    auto& self = static_cast<cycler&>(*call.self.as_object());
    const value v = self.current();
    self.at_ = (self.at_ + 1) % self.items_.as_list().items.size();
    return v;
  }
  static value reset(native_call& call) {
    static_cast<cycler&>(*call.self.as_object()).at_ = 0;
    return {};
  }

  value items_;
  std::size_t at_ = 0;
};

value make_joiner(native_call& call) {
  const auto [separator] = bind_arguments(call, {"sep"});
  return value::object(std::make_shared<joiner>(separator != nullptr ? *separator : value::string(call.budget, ", ")));
}

value make_cycler(native_call& call) {
  if (call.arguments.positional.empty()) throw error{"wanted at least one item for cycler()"};
  return value::object(std::make_shared<cycler>(value::list(call.budget, std::move(call.arguments.positional))));
}

constexpr std::pair<std::string_view, native_function> globals[] = {
    {"cycler", make_cycler},        {"dict", make_dict},   {"joiner", make_joiner},
    {"namespace", make_namespace},  {"range", make_range}, {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

native_function find_global(std::string_view name) {
  const auto found =
      std::find_if(std::begin(globals), std::end(globals), [&](const auto& g) { return g.first == name; });
  return found == std::end(globals) ? nullptr : found->second;
}

}  // namespace redline::jinja
