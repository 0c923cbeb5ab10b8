#include "actors/cli/help/shell_script.hpp"

namespace redline::actors::cli {
namespace {

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

}  // namespace

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

}  // namespace redline::actors::cli
