#!/bin/sh
# Git runs this hook once for each ref of a push. It rejects the branches listed in the file protected-branches, one
# pattern per line; other refs of the same push are accepted.
case $1 in
refs/heads/*) branch=${1#refs/heads/} ;;
*) exit 0 ;;
esac
list=${GIT_DIR:-.}/protected-branches
[ -f "$list" ] || exit 0
while IFS= read -r pattern || [ -n "$pattern" ]; do
	[ -n "$pattern" ] || continue
	# The pattern is unquoted so that its * matches.
	# shellcheck disable=SC2254
	case $branch in
	$pattern)
		echo "error: branch \"$branch\" is protected: pushes to it are rejected." >&2
		echo "error: Push another branch, or remove the protection with flux-sandbox git unprotect." >&2
		exit 1
		;;
	esac
done <"$list"
exit 0
