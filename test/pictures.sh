#!/usr/bin/env bash
# Generates the pictures in docs/pictures from the cluster of the demo. Names of
# commits and pods differ on every cluster: a picture that differs only in these
# is not replaced.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
sandbox=$("$root/bin/flux" sandbox env)
eval "$sandbox"
export PATH="$root/bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# nameless prints a picture without generated names.
nameless() { sed -E 's/@sha1:[0-9a-f]+/@sha1:X/g; s/(my-app-[0-9a-f]{8,10})-[0-9a-z]{5}\b/\1-X/g' "$1"; }

draw() {
	local picture=$1 old=$root/docs/pictures/$1
	shift
	flux "$@" --output svg >"$work/$picture"
	if [[ -f $old ]] && diff <(nameless "$old") <(nameless "$work/$picture") >/dev/null; then
		echo "docs/pictures/$picture is unchanged"
		return
	fi
	mkdir -p "$root/docs/pictures"
	cp "$work/$picture" "$old"
	echo "docs/pictures/$picture is updated"
}

draw deps.svg deps --all-namespaces
draw tree.svg tree kustomization my-app
