# zsh_capture.zsh FOLDER LINE: prints what zsh offers at the end of LINE, with the completion functions in FOLDER. An
# interactive zsh on a terminal of its own completes; compadd says there what it is given.
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1= PS2= RPS1=; stty -echo -onlcr; unsetopt zle_bracketed_paste 2>/dev/null
fpath=($1 \$fpath); autoload -U compinit; compinit -u -D
compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd \"\$@\"; return; fi
  typeset -a __hits; builtin compadd -A __hits \"\$@\"
  local __hit; for __hit in \$__hits; do print -r -- \"OFFER:\$__hit\"; done
}
zstyle ':completion:*' insert-tab false; setopt rcexpandparam
null-line() { print DONE; exit }
finish() { zle complete-word; print; print DONE; exit }
zle -N finish; bindkey '^X' finish; print READY"
zpty -r z line '*READY*READY*' || zpty -r z line '*READY*'
zpty -n -w z "$2"$'\C-X'
zpty -r z line '*DONE*'
print -r -- "$line" | tr -d '\r' | sed -n 's/^.*OFFER://p'
zpty -d z
