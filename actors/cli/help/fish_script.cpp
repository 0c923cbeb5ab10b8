#include "actors/cli/help/shell_script.hpp"

namespace redline::actors::cli {
namespace {

/// fish knows two escapes between them.
std::string fish_quoted(const std::string& text) {
  return "'" + replace_all(replace_all(text, "\\", "\\\\"), "'", "\\'") + "'";
}

}  // namespace

std::string fish_script(const command_text& program) {
  std::vector<std::string> valued;
  for (const argument_text& a : program.arguments) {
    if (a.kind != value_kind::none) valued.insert(valued.end(), a.flags.begin(), a.flags.end());
  }
  const std::string at = "_" + function_name(program.name, "at");
  std::string out = "# Completes " + program.name + " in fish; made by '" + program.name + " completions fish'.\n";
  std::string known;
  for_each_command(program, [&](const command_text&, const std::string& path, const auto&) {
    if (!path.empty()) known += " " + fish_quoted(path);
  });
  out += "function " + at + " --description 'whether the command before the cursor is this one'\n    set -l known" +
         known +
         "\n    set -l path\n    set -l skip 0\n"
         "    for word in (commandline -opc)[2..-1]\n"
         "        if test $skip = 1\n            set skip 0\n"
         "        else if contains -- $word " +
         joined(valued) +
         "\n            set skip 1\n"
         "        else if contains -- (string trim -- \"$path $word\") $known\n            set -a path $word\n"
         "        end\n    end\n    test \"$path\" = \"$argv[1]\"\nend\n"
         "complete -c " +
         program.name + " -f\n";
  for_each_command(program, [&](const command_text& c, const std::string& path, const auto& arguments) {
    const std::string begin = "complete -c " + program.name + " -n " + fish_quoted(at + " " + fish_quoted(path));
    for (const command_text& sub : c.commands)
      out += begin + " -a " + sub.name + " -d " + fish_quoted(short_help(sub.help)) + "\n";
    if (c.hands_over) out += begin + " -F\n";
    for (const argument_text& a : arguments) {
      std::string line = begin;
      for (const std::string& flag : a.flags)
        line += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
      if (a.kind == value_kind::choice)
        line += (a.is_positional() ? " -a " : " -x -a ") + fish_quoted(joined(a.choices));
      else if (a.kind == value_kind::folder)
        line += std::string(a.is_positional() ? "" : " -x") + " -a '(__fish_complete_directories)'";
      else if (a.kind == value_kind::file)
        line += a.is_positional() ? " -F" : " -r -F";
      else if (a.kind != value_kind::none)
        line += " -x";
      if (a.is_positional() && a.kind != value_kind::choice && a.kind != value_kind::folder &&
          a.kind != value_kind::file)
        continue;
      if (!a.is_positional()) line += " -d " + fish_quoted(short_help(a.help));
      out += line + "\n";
    }
  });
  return out;
}

}  // namespace redline::actors::cli
