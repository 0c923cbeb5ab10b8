#include "actors/cli/help/completion_script.hpp"

#include <algorithm>
#include <functional>

namespace redline::actors::cli {
namespace {

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

/// Between single quotes; bash and zsh end the quotes for a quote.
std::string quoted(const std::string& text) { return "'" + replace_all(text, "'", "'\\''") + "'"; }
/// fish knows two escapes between them.
std::string fish_quoted(const std::string& text) {
  return "'" + replace_all(replace_all(text, "\\", "\\\\"), "'", "\\'") + "'";
}

/// Calls `look` with each command, its path from the program ("session new") and its arguments together with those of
/// the program, which may stand after a command, too.
void for_each_command(
    const command_text& program,
    const std::function<void(const command_text&, const std::string&, const std::vector<argument_text>&)>& look) {
  const std::function<void(const command_text&, const std::string&)> walk = [&](const command_text& c,
                                                                                const std::string& path) {
    auto all = c.arguments;
    if (&c != &program && !c.hands_over) {
      for (const argument_text& a : program.arguments) {
        if (a.variable.empty() && a.kind == value_kind::none) continue;  // --help and --version are the command's own
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

// ---- bash: tables as functions, and one walk over the words before the cursor ----

std::string bash_kind(const argument_text& a) {
  switch (a.kind) {
    case value_kind::none:
      return {};
    case value_kind::choice:
      return "choice " + joined(a.choices);
    case value_kind::file:
      return "file";
    case value_kind::folder:
      return "folder";
    case value_kind::text:
    case value_kind::number:
      break;
  }
  return "text";
}

std::string bash_script(const command_text& program) {
  std::string commands;
  std::string flags;
  std::string values;
  std::string places;
  for_each_command(program, [&](const command_text& c, const std::string& path, const auto& arguments) {
    std::vector<std::string> names;
    for (const command_text& sub : c.commands) names.push_back(sub.name);
    if (!names.empty()) commands += "    " + quoted(path) + ") echo " + quoted(joined(names)) + " ;;\n";
    std::vector<std::string> all;
    std::size_t place = 0;
    for (const argument_text& a : arguments) {
      if (a.is_positional()) {
        ++place;
        const std::string which = a.repeated ? "*" : std::to_string(place);
        places += "    " + quoted(path + ":") + which + ") echo " + quoted(bash_kind(a)) + " ;;\n";
        continue;
      }
      std::string pattern;
      for (const std::string& flag : a.flags) {
        if (flag.starts_with("--")) all.push_back(flag);
        pattern += (pattern.empty() ? "" : "|") + quoted(path + ":" + flag);
      }
      if (a.kind != value_kind::none) values += "    " + pattern + ") echo " + quoted(bash_kind(a)) + " ;;\n";
    }
    if (c.hands_over) places += "    " + quoted(path + ":") + "*) echo file ;;\n";
    flags += "    " + quoted(path) + ") echo " + quoted(joined(all)) + " ;;\n";
  });
  static constexpr std::string_view text = R"bash(# Completes @program@ in bash; made by '@program@ completions bash'.
# Commands that may follow one, flags of one, and kinds of values: of COMMAND:FLAG, and of COMMAND:NUMBER of the argument.
@_commands() {
  case "$1" in
%commands%  esac
}
@_flags() {
  case "$1" in
%flags%  esac
}
@_value() {
  case "$1" in
%values%  esac
}
@_argument() {
  case "$1" in
%places%  esac
}
@() {
  local cur="${COMP_WORDS[COMP_CWORD]}" command='' flag='' front='' given=0 ended='' word kind line i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word="${COMP_WORDS[i]}"
    if [ -n "$flag" ]; then
      [ "$word" = '=' ] || flag=''  # bash makes three words of --flag=value
    elif [ -z "$ended" ] && [ "$word" = '--' ]; then
      ended=1
    elif [ -z "$ended" ] && [ "${word#-}" != "$word" ]; then
      if [ -n "$(@_value "$command:$word")" ]; then flag="$word"; fi
    else
      case " $(@_commands "$command") " in
        *" $word "*) command="${command:+$command }$word" ;;
        *) given=$((given + 1)) ;;
      esac
    fi
  done
  if [ -n "$flag" ]; then
    [ "$cur" = '=' ] && cur=''
    kind="$(@_value "$command:$flag")"
  elif [ -z "$ended" ] && [ "${cur#--*=}" != "$cur" ]; then
    front="${cur%%=*}="
    cur="${cur#*=}"
    kind="$(@_value "$command:${front%=}")"
  elif [ -z "$ended" ] && [ "${cur#-}" != "$cur" ]; then
    kind="choice $(@_flags "$command")"
  elif [ -n "$(@_commands "$command")" ]; then
    kind="choice $(@_commands "$command")"
  else
    kind="$(@_argument "$command:$((given + 1))")"
  fi
  case "$kind" in
    choice*)
      while IFS= read -r line; do COMPREPLY+=("$front$line"); done < <(compgen -W "${kind#choice}" -- "$cur") ;;
    file | folder)
      compopt -o filenames 2>/dev/null
      [ "$kind" = file ] && kind='-f' || kind='-d'
      while IFS= read -r line; do COMPREPLY+=("$front$line"); done < <(compgen "$kind" -- "$cur") ;;
  esac
}
complete -F @ @program@
)bash";
  std::string script = replace_all(std::string(text), "@program@", program.name);
  script = replace_all(script, "@", function_name(program.name, ""));
  script = replace_all(script, "%commands%", commands);
  script = replace_all(script, "%flags%", flags);
  script = replace_all(script, "%values%", values);
  return replace_all(script, "%places%", places);
}

// ---- zsh: a function per command ----

std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '[' || c == ']' || c == ':') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string zsh_action(const argument_text& a) {
  switch (a.kind) {
    case value_kind::choice:
      return "(" + joined(a.choices) + ")";
    case value_kind::file:
      return "_files";
    case value_kind::folder:
      return "_files -/";
    default:
      return " ";
  }
}

std::string zsh_argument(const argument_text& a, std::size_t place) {
  if (a.is_positional()) {
    return quoted((a.repeated ? "*" : std::to_string(place)) + ":" + zsh_text(a.place) + ":" + zsh_action(a));
  }
  const std::string what =
      a.kind == value_kind::none ? std::string() : ":" + zsh_text(a.flags.back().substr(2)) + ":" + zsh_action(a);
  std::string out;
  for (const std::string& flag : a.flags) {
    const bool is_long = flag.starts_with("--");
    const std::string before = a.repeated ? "*" : a.flags.size() > 1 ? "(" + joined(a.flags) + ")" : "";
    const std::string after = a.kind == value_kind::none ? "" : is_long ? "=" : "+";
    out += (out.empty() ? "" : " \\\n    ") +
           quoted(before + flag + after + "[" + zsh_text(short_help(a.help)) + "]" + what);
  }
  return out;
}

std::string zsh_script(const command_text& program) {
  std::string out = "#compdef " + program.name + "\n# Completes " + program.name + " in zsh; made by '" + program.name +
                    " completions zsh'.\n";
  for_each_command(program, [&](const command_text& c, const std::string& path, const auto& arguments) {
    const std::string name = function_name(program.name, path);
    out += name + "() {\n";
    if (!c.commands.empty()) {
      out += "  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n  local -a commands=(\n";
      for (const command_text& sub : c.commands)
        out += "    " + quoted(zsh_text(sub.name) + ":" + short_help(sub.help)) + "\n";
      out += "  )\n";
    }
    if (c.hands_over) {
      out += "  _files\n}\n";
      return;
    }
    out += std::string("  _arguments -s") + (c.commands.empty() ? "" : " -C");
    std::size_t place = 0;
    for (const argument_text& a : arguments) {
      if (a.is_positional()) ++place;
      out += " \\\n    " + zsh_argument(a, place);
    }
    if (!c.commands.empty()) {
      out +=
          " \\\n    '1: :->command' \\\n    '*:: :->arguments'\n  case $state in\n"
          "    command) _describe -t commands 'command' commands ;;\n    arguments)\n      case $words[1] in\n";
      for (const command_text& sub : c.commands) {
        out += "        " + sub.name + ") " +
               function_name(program.name, path.empty() ? sub.name : path + " " + sub.name) + " ;;\n";
      }
      out += "      esac ;;\n  esac";
    }
    out += "\n}\n";
  });
  const std::string name = function_name(program.name, "");
  return out + "if [ \"$funcstack[1]\" = " + name + " ]; then\n  " + name + " \"$@\"\nelse\n  compdef " + name + " " +
         program.name + "\nfi\n";
}

// ---- fish: a line per flag ----

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

}  // namespace

std::string completion_script(const command_text& program, std::string_view shell) {
  if (shell == "zsh") return zsh_script(program);
  return shell == "fish" ? fish_script(program) : bash_script(program);
}

}  // namespace redline::actors::cli
