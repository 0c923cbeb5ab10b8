#include <algorithm>
#include <ctime>
#include <iterator>
#include <memory>
#include <utility>

#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/interpreter.hpp"

namespace redline::text {
namespace {

constexpr std::int64_t range_max = 100'000;  // as Jinja's sandbox has it
constexpr std::size_t date_format_bytes_max = 1024;

jinja_value raise_exception(jinja_call& call) {
  const auto [message] = bind_arguments(call, {"message"});
  // The template refuses the conversation: the client's mistake, not the template's.
  throw jinja_error{message == nullptr ? "" : jinja_str(call.budget, *message), errc::invalid_argument};
}

jinja_value strftime_now(jinja_call& call) {
  const auto [format] = bind_arguments(call, {"format"});
  const std::string& text = text_argument(call, format, "format");
  if (text.empty()) return jinja_value::string(call.budget, "");
  if (text.size() > date_format_bytes_max) throw jinja_error{"wanted a date format of at most 1024 bytes"};
  const auto seconds = static_cast<std::time_t>(call.interpreter.now());
  std::tm when{};
  if (gmtime_r(&seconds, &when) == nullptr) throw jinja_error{"wanted a time that a calendar can hold"};
  char buffer[4096];
  const std::size_t length = std::strftime(buffer, sizeof buffer, text.c_str(), &when);
  return jinja_value::string(call.budget, std::string(buffer, length));
}

jinja_value make_range(jinja_call& call) {
  const auto [first, second, third] = bind_arguments(call, {"start", "stop", "step"});
  if (first == nullptr) throw jinja_error{"wanted at least one argument of range()"};
  const bool only_stop = second == nullptr;
  const std::int64_t start = only_stop ? 0 : integer_argument(call, first, 0);
  const std::int64_t stop = integer_argument(call, only_stop ? first : second, 0);
  const std::int64_t step = integer_argument(call, third, 1);
  if (step == 0) throw jinja_error{"wanted a step other than 0 of range()"};
  std::vector<jinja_value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(items.size()) >= range_max)
      throw jinja_error{"wanted a range of at most 100000 numbers"};
    items.push_back(jinja_value::integer(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return jinja_value::list(call.budget, std::move(items));
}

using entries = std::vector<std::pair<jinja_value, jinja_value>>;

/// dict(mapping or pairs, **more)
entries dict_entries(jinja_call& call) {
  entries out;
  if (call.arguments.positional.size() > 1) {
    throw jinja_error{"`" + std::string(call.name) + "` takes at most one positional argument"};
  }
  for (const jinja_value& from : call.arguments.positional) {
    if (from.defined().is_dict()) {
      out = from.as_dict().entries;
      continue;
    }
    for (const jinja_value& pair : jinja_iterate(call.budget, from)) {
      std::vector<jinja_value> parts = jinja_iterate(call.budget, pair);
      if (parts.size() != 2) throw jinja_error{"wanted pairs to make a dict from"};
      out.emplace_back(std::move(parts[0]), std::move(parts[1]));
    }
  }
  for (auto& [name, value] : call.arguments.keyword) {
    out.emplace_back(jinja_value::string(call.budget, name), std::move(value));
  }
  return out;
}

jinja_value make_dict(jinja_call& call) { return jinja_value::dict(call.budget, dict_entries(call)); }

jinja_value make_namespace(jinja_call& call) {
  const auto space = std::make_shared<jinja_namespace>();
  for (auto& [name, value] : dict_entries(call)) {
    if (!name.is_string()) throw jinja_error{"wanted names for a namespace, found " + std::string(name.type_name())};
    space->set(call.budget, name.text(), std::move(value));
  }
  call.interpreter.keep(space);
  return jinja_value::object(space);
}

/// joiner(separator): nothing when called first, then the separator.
class joiner final : public jinja_object {
 public:
  explicit joiner(jinja_value separator) : separator_(std::move(separator)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Joiner"; }
  [[nodiscard]] std::uint32_t nesting() const override { return separator_.nesting() + 1; }
  [[nodiscard]] bool is_callable() const override { return true; }
  jinja_value call(jinja_interpreter& interpreter, jinja_arguments) override {
    if (std::exchange(used_, true)) return separator_;
    return jinja_value::string(interpreter.budget(), "");
  }

 private:
  jinja_value separator_;
  bool used_ = false;
};

/// cycler(a, b, ...): next(), current and reset().
class cycler final : public jinja_object {
 public:
  explicit cycler(jinja_value items) : items_(std::move(items)) {}
  [[nodiscard]] std::string_view type_name() const override { return "Cycler"; }
  [[nodiscard]] std::uint32_t nesting() const override { return items_.nesting() + 1; }
  jinja_value attribute(jinja_interpreter& interpreter, std::string_view name) override {
    if (name == "current") return current();
    const jinja_native native = name == "next" ? next : name == "reset" ? reset : nullptr;
    if (native == nullptr) return jinja_object::attribute(interpreter, name);
    return jinja_value::object(
        std::make_shared<jinja_function>(native, std::string(name), jinja_value::object(shared_from_this())));
  }

 private:
  [[nodiscard]] const jinja_value& current() const { return items_.as_list().items[at_]; }
  static jinja_value next(jinja_call& call) {
    auto& self = static_cast<cycler&>(*call.self.as_object());
    const jinja_value value = self.current();
    self.at_ = (self.at_ + 1) % self.items_.as_list().items.size();
    return value;
  }
  static jinja_value reset(jinja_call& call) {
    static_cast<cycler&>(*call.self.as_object()).at_ = 0;
    return {};
  }

  jinja_value items_;
  std::size_t at_ = 0;
};

jinja_value make_joiner(jinja_call& call) {
  const auto [separator] = bind_arguments(call, {"sep"});
  return jinja_value::object(
      std::make_shared<joiner>(separator != nullptr ? *separator : jinja_value::string(call.budget, ", ")));
}

jinja_value make_cycler(jinja_call& call) {
  if (call.arguments.positional.empty()) throw jinja_error{"wanted at least one item for cycler()"};
  return jinja_value::object(
      std::make_shared<cycler>(jinja_value::list(call.budget, std::move(call.arguments.positional))));
}

constexpr std::pair<std::string_view, jinja_native> globals[] = {
    {"cycler", make_cycler},        {"dict", make_dict},   {"joiner", make_joiner},
    {"namespace", make_namespace},  {"range", make_range}, {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
};

}  // namespace

jinja_native find_global(std::string_view name) {
  const auto found =
      std::find_if(std::begin(globals), std::end(globals), [&](const auto& g) { return g.first == name; });
  return found == std::end(globals) ? nullptr : found->second;
}

}  // namespace redline::text
