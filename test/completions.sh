#!/usr/bin/env bash
# Loads the completion scripts of flux in real shells, as the packages install them and as the help says, and
# completes words: test/completions.sh DIRECTORY, which has flux and completions/flux.SHELL. A test of make test
# does so for bash.
set -euo pipefail

fail() { echo "✗ $*" >&2; exit 1; }

[ $# -eq 1 ] || fail "usage: test/completions.sh DIRECTORY"
directory=$(cd -- "$1" && pwd)
for shell in zsh fish; do
	command -v "$shell" >/dev/null || fail "$shell not found: install the package $shell"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/vendor" "$work/.config/fish/completions"
cp "$directory/completions/flux.zsh" "$work/vendor/_flux"
cp "$directory/completions/flux.fish" "$work/.config/fish/completions/"
clean=(env -i HOME="$work" PATH="$directory:$PATH" TERM=dumb LC_ALL=C.UTF-8 KUBECONFIG="$work/none")

# compare compares the completions of a line with what is expected.
compare() { # SHELL LINE GOT WANT
	[ "$3" = "$4" ] || fail "$1 completes '$2' with '$3', want '$4'"
	echo "✔ $1: $2 → $3"
}

# fishes prints the completions of a line with their descriptions.
fishes() { "${clean[@]}" fish --private --command 'complete --do-complete $argv[1]' -- "$1"; }

compare fish 'flux get kust' "$(fishes 'flux get kust')" $'kustomizations\tList Kustomization objects and their status'
compare fish 'flux get all --output=js' "$(fishes 'flux get all --output=js' | cut -f 1)" $'--output=json\n--output=jsonpath='
compare fish 'flux susp' "$(fishes 'flux susp' | cut -f 1)" suspend

# zshes presses Tab at the end of a line in an interactive zsh, and prints the line.
cat >"$work/tab.zsh" <<'ZSH'
zmodload zsh/zpty
zpty terminal zsh -f -i
# type types a line and waits for the mark that its command prints.
type() { zpty -w terminal "$1; print -r -- MARK''$2"; zpty -r -m terminal shown "*MARK$2*" }
type "PS1= RPS1=; unsetopt zle_bracketed_paste 2>/dev/null; stty -echo" 1
type "$1" 2
# The line that was completed is printed by its own command: print -r -- LINE.
zpty -w -n terminal $'show() { print -r -- "LINE<$BUFFER>"; BUFFER=; zle accept-line }; zle -N show; bindkey "^X" show\n'
type ":" 3
zpty -w -n terminal "$2"$'\t\x18'
zpty -r -m terminal shown '*LINE<*>*'
zpty -d terminal
print -r -- "${${shown##*LINE<}%%>*}"
ZSH
zshes() { timeout 60 "${clean[@]}" zsh -f "$work/tab.zsh" "$1" "$2" || echo "(no answer)"; }

installed="fpath=($work/vendor \$fpath); autoload -Uz compinit; compinit -u -d $work/dump"
sourced="autoload -Uz compinit; compinit -u -d $work/dump2; source $directory/completions/flux.zsh"
for setup in "$installed" "$sourced"; do
	compare zsh 'flux get kust' "$(zshes "$setup" 'flux get kust')" 'flux get kustomizations '
	compare zsh 'flux install --log-level=de' "$(zshes "$setup" 'flux install --log-level=de')" 'flux install --log-level=debug '
	compare zsh 'flux susp' "$(zshes "$setup" 'flux susp')" 'flux suspend '
	compare zsh 'flux nothing-like-it' "$(zshes "$setup" 'flux nothing-like-it')" 'flux nothing-like-it'
done
