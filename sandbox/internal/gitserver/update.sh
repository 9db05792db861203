#!/bin/sh
# Git runs this once for each ref of a push. It refuses the branches listed in the file protected-branches, one pattern
# a line, and lets every other ref of the same push pass.
case $1 in
refs/heads/*) branch=${1#refs/heads/} ;;
*) exit 0 ;;
esac
list=${GIT_DIR:-.}/protected-branches
[ -f "$list" ] || exit 0
while IFS= read -r pattern || [ -n "$pattern" ]; do
	[ -n "$pattern" ] || continue
	# The pattern stands unquoted because its * is meant to match.
	# shellcheck disable=SC2254
	case $branch in
	$pattern)
		echo "error: branch \"$branch\" is protected: this server takes no direct push to it." >&2
		echo "error: Push another branch instead, or lift the protection: flux-sandbox git unprotect" >&2
		exit 1
		;;
	esac
done <"$list"
exit 0
