#!/usr/bin/env bash
# The pictures in docs/pictures, drawn by flux of the cluster that the demo
# leaves behind.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
sandbox=$("$root/bin/flux" sandbox env)
eval "$sandbox"
export PATH="$root/bin:$PATH"

mkdir -p "$root/docs/pictures"
flux deps --all-namespaces --output svg >"$root/docs/pictures/deps.svg"
flux tree kustomization my-app --output svg >"$root/docs/pictures/tree.svg"
echo "docs/pictures/deps.svg and docs/pictures/tree.svg are drawn anew"
