#include "runtime/jinja/builtins.hpp"

#include <algorithm>

#include "runtime/base/utf8.hpp"
#include "runtime/jinja/interpreter.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
void bind_arguments(const native_call& call, const char* const* names, std::size_t count, const value** out) {
  const std::string title = "`" + std::string(call.name.substr(0, 40)) + "`";
  if (call.arguments.positional.size() > count) {
    throw error{title + " takes at most " + std::to_string(count) + " arguments, found " +
                std::to_string(call.arguments.positional.size())};
  }
  for (std::size_t i = 0; i < call.arguments.positional.size(); ++i) out[i] = &call.arguments.positional[i];
  for (const auto& [name, v] : call.arguments.keyword) {
    const auto found = std::find_if(names, names + count, [&](const char* n) { return name == n; });
    if (found == names + count) throw error{title + " has no parameter `" + name.substr(0, 40) + "`"};
    const value*& place = out[found - names];
    if (place != nullptr) throw error{title + " got parameter `" + name + "` twice"};
    place = &v;
  }
}

void expect_no_arguments(const native_call& call) {
  if (call.arguments.positional.empty() && call.arguments.keyword.empty()) return;
  throw error{"`" + std::string(call.name.substr(0, 40)) + "` takes no arguments"};
}

std::int64_t integer_argument(const native_call& call, const value* v, std::int64_t fallback) {
  if (v == nullptr || v->is_none()) return fallback;
  if (v->defined().is_integral()) return v->as_integer();
  throw error{"expected an int in a call of `" + std::string(call.name) + "`, found " + std::string(v->type_name())};
}

bool boolean_argument(const value* v, bool fallback) { return v == nullptr ? fallback : v->truth(); }

const std::string& text_argument(const native_call& call, const value* v, std::string_view parameter) {
  if (v != nullptr && v->defined().is_string()) return v->text();
  throw error{"expected a str as `" + std::string(parameter) + "` of `" + std::string(call.name) + "`, found " +
              std::string(v == nullptr ? "nothing" : v->type_name())};
}

std::string replace_text(render_budget& budget, std::string_view text, std::string_view from, std::string_view to,
                         std::int64_t count) {
  text_builder out(budget);
  budget.touch(text.size());
  std::size_t at = 0;
  if (from.empty()) {  // replaces before every code point, and at the end
    while (count != 0) {
      out.append(to);
      --count;
      if (at >= text.size()) break;
      const std::size_t length = utf8::decode(text, at).size_bytes;
      out.append(text.substr(at, length));
      at += length;
    }
    out.append(text.substr(at));
    return out.take();
  }
  while (count != 0) {
    const std::size_t found = text.find(from, at);
    if (found == text.npos) break;
    out.append(text.substr(at, found - at));
    out.append(to);
    at = found + from.size();
    --count;
  }
  out.append(text.substr(at));
  return out.take();
}

std::string escape_html(render_budget& budget, std::string_view text) {
  text_builder out(budget);
  budget.touch(text.size());
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t at = std::min(text.find_first_of("&<>'\"", from), text.size());
    out.append(text.substr(from, at - from));
    from = at + 1;
    if (at == text.size()) break;
    const char c = text[at];
    out.append(c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '\'' ? "&#39;" : "&#34;");
  }
  return out.take();
}

value made_safe(render_budget& budget, const value& text) {
  return text.is_safe() ? text : value::safe_string(budget, escape_html(budget, text.text()));
}

value repeat(render_budget& budget, const value& v, std::int64_t count) {
  if (v.is_string()) {
    const std::string& text = v.text();
    if (count <= 0 || text.empty()) return value::string(budget, "");
    const std::size_t bytes_max = budget.limits().memory_bytes_max;
    const bool fits = static_cast<std::uint64_t>(count) <= bytes_max / text.size();
    const memory_charge for_text(budget, fits ? text.size() * static_cast<std::size_t>(count) : bytes_max + 1);
    budget.touch(text.size() * static_cast<std::size_t>(count));
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += text;
    return v.is_safe() ? value::safe_string(budget, std::move(out)) : value::string(budget, std::move(out));
  }
  const list_object& list = v.as_list();
  std::vector<value> items;
  memory_charge for_items(budget, 0);
  if (!list.items.empty()) {
    for (std::int64_t i = 0; i < count; ++i) {
      budget.step(list.items.size());
      for_items.grow(list.items.size() * sizeof(value));
      items.insert(items.end(), list.items.begin(), list.items.end());
    }
  }
  return list.is_tuple ? value::tuple(budget, std::move(items)) : value::list(budget, std::move(items));
}

}  // namespace redline::jinja
