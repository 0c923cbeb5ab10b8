#include "actors/cli/help/completion_script.hpp"

namespace redline::actors::cli {
namespace {

// candidates.hpp describes the output that the scripts read. A shell keeps a "~" as it was typed.

constexpr std::string_view bash_script = R"bash(# Completes redline in bash; printed by 'redline completions bash'.
_redline() {
  local cur="${COMP_WORDS[COMP_CWORD]}" front='' line path
  COMPREPLY=()
  local words=("${COMP_WORDS[@]:1:COMP_CWORD}") program="${COMP_WORDS[0]/#\~\//$HOME/}"
  case "$cur" in
    =) cur='' ;;  # bash makes three words of --flag=value
    --*=*) front="${cur%%=*}=" cur="${cur#*=}" ;;
  esac
  while IFS= read -r line; do
    line="${line%%$'\t'*}"
    case "$line" in
      :file | :folder)
        compopt -o filenames 2>/dev/null
        [ "$line" = :file ] && line=-f || line=-d
        while IFS= read -r path; do COMPREPLY+=("$front$path"); done < <(compgen "$line" -- "$cur") ;;
      "$cur"*) COMPREPLY+=("$front$line") ;;
    esac
  done < <("$program" complete "${words[@]}" 2>/dev/null)
}
complete -F _redline redline
)bash";

constexpr std::string_view zsh_script = R"zsh(#compdef redline
# Completes redline in zsh; printed by 'redline completions zsh'.
_redline() {
  local program="${words[1]/#\~\//$HOME/}" line
  local -a before=("${(@Q)words[2,CURRENT-1]}") flags=() others=()
  local -a lines=("${(@f)$("$program" complete "${before[@]}" "${(Q)PREFIX}" 2>/dev/null)}")
  [[ $PREFIX == --*=* ]] && compset -P '*='
  for line in $lines; do
    case $line in
      :file) _files ;;
      :folder) _files -/ ;;
      -*) flags+=("${${line//:/\\:}/$'\t'/:}") ;;
      *) others+=("${${line//:/\\:}/$'\t'/:}") ;;
    esac
  done
  (( $#flags )) && _describe -o option flags
  (( $#others )) && _describe value others
}
if [ "$funcstack[1]" = _redline ]; then
  _redline "$@"
else
  compdef _redline redline
fi
)zsh";

constexpr std::string_view fish_script = R"fish(# Completes redline in fish; printed by 'redline completions fish'.
function __redline_candidates
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l front (string match -r -- '^--[^=]*=' $last)
    set -l begun (string replace -r -- '^--[^=]*=' '' $last)
    set -l program (string replace -r -- '^~/' $HOME/ $words[1])
    type -q $program; or return
    for line in ($program complete $words[2..-1] $last 2>/dev/null)
        switch $line
            case :file
                for path in (__fish_complete_path $begun)
                    echo -- "$front$path"
                end
            case :folder
                for path in (__fish_complete_directories $begun '')
                    echo -- "$front$path"
                end
            case '*'
                echo -- "$front$line"
        end
    end
end
complete -c redline -f -a '(__redline_candidates)'
)fish";

}  // namespace

std::string_view completion_script(std::string_view shell) {
  return shell == "zsh" ? zsh_script : shell == "fish" ? fish_script : bash_script;
}

}  // namespace redline::actors::cli
