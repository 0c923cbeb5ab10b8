#include "actors/cli/help/shell_script.hpp"

#include <algorithm>

namespace redline::actors::cli {

std::string replace_all(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string quoted(const std::string& text) { return "'" + replace_all(text, "'", "'\\''") + "'"; }

void for_each_command(
    const command_text& program,
    const std::function<void(const command_text&, const std::string&, const std::vector<argument_text>&)>& look) {
  const std::function<void(const command_text&, const std::string&)> walk = [&](const command_text& c,
                                                                                const std::string& path) {
    auto all = c.arguments;
    if (&c != &program && !c.hands_over) {
      for (const argument_text& a : program.arguments) {
        if (a.flags.back() == "--help" || a.flags.back() == "--version")
          continue;  // these a command has itself, or not
        all.push_back(a);
      }
    }
    look(c, path, all);
    for (const command_text& sub : c.commands) walk(sub, path.empty() ? sub.name : path + " " + sub.name);
  };
  walk(program, "");
}

std::string function_name(const std::string& program, const std::string& path) {
  std::string name = "_" + program + (path.empty() ? "" : "_" + path);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

}  // namespace redline::actors::cli
