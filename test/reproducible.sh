#!/usr/bin/env bash
# Builds all programs of a release from two clones in different directories, each with a build cache of its
# own, and compares them. It compiles everything twice: 20 minutes on two cores.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in one two/with/another/length; do
	clone=$work/$name/flux
	git clone --quiet "$root" "$clone"
	GOCACHE=$work/$name/cache FLUX_BUILD_CACHE=$work/$name/build make -C "$clone" build sandbox controllers
	(cd "$clone/bin" && find . -type f -exec sha256sum {} + | LC_ALL=C sort -k 2) >"$work/$(basename "$name").sums"
	rm -rf "$work/${name%%/*}"
done
diff "$work/one.sums" "$work/length.sums" || { echo "✗ the builds differ" >&2; exit 1; }
cat "$work/one.sums"
echo "✔ both builds are equal" >&2
