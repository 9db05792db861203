#!/usr/bin/env bash
# Installs flux and its sandbox from the archives of a release for a user without anything but coreutils
# and git, and prints the time until an application runs: test/empty-machine.sh ARCHIVES VERSION
set -euo pipefail

[ $# -eq 2 ] || { echo "✗ usage: test/empty-machine.sh ARCHIVES VERSION" >&2; exit 1; }
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d /tmp/flux-empty-XXXXXX) # short, because it contains sockets
home=$work/home
trap 'HOME=$home "$home/bin/flux" sandbox down >/dev/null || true; rm -rf "$work"' EXIT

release=$work/releases/download/v$2
mkdir -p "$home" "$work/bin" "$release"
ln "$1"/*.tar.gz "$release" 2>/dev/null || cp "$1"/*.tar.gz "$release"
(cd "$release" && sha256sum -- *.tar.gz >"flux_$2_checksums.txt")
for tool in sh git basename cat chmod cp cut date dirname env head ln ls mkdir mktemp mv pwd rm sed sort tail touch tr uname wc; do
	ln -s "$(command -v "$tool")" "$work/bin/$tool"
done

seconds() { date +%s.%N; }
since() { awk -v from="$1" -v to="$(seconds)" 'BEGIN { printf "%.1f s\n", to - from }'; }

start=$(seconds)
env -i HOME="$home" PATH="$PATH" FLUX_VERSION="$2" FLUX_DIR="$home/bin" FLUX_SANDBOX=1 FLUX_RELEASES="file://$work/releases" sh "$root/install.sh"
echo "installed after $(since "$start")"

cat >"$work/steps.sh" <<'STEPS'
set -eu
flux sandbox up
eval "$(flux sandbox env)"
flux sandbox git create fleet
export GIT_PASSWORD=not-checked-until-credentials-are-set
flux bootstrap git --url="$FLUX_SANDBOX_GIT_URL/fleet.git" --allow-insecure-http \
	--branch=main --path=clusters/demo --username=demo --token-auth --silent
cd "$HOME"
git clone --quiet "$FLUX_SANDBOX_GIT_URL/fleet.git" fleet
cd fleet
mkdir -p apps/my-app
cat >apps/my-app/deployment.yaml <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: my-app, namespace: default}
spec:
  selector: {matchLabels: {app: my-app}}
  template:
    metadata: {labels: {app: my-app}}
    spec: {containers: [{name: app, image: ghcr.io/stefanprodan/podinfo:6.9.0}]}
YAML
flux create kustomization my-app --source=GitRepository/flux-system --path=./apps/my-app --prune --wait --interval=10m --export >clusters/demo/my-app.yaml
git add --all
git -c user.name=demo -c user.email=demo@example.com commit --quiet --message "Run my-app"
git push --quiet
flux reconcile kustomization flux-system --with-source
flux reconcile kustomization my-app
[ "$(kubectl get deployment my-app -o 'jsonpath={.status.readyReplicas}')" = 1 ]
STEPS
start=$(seconds)
env -i HOME="$home" PATH="$home/bin:$work/bin" sh "$work/steps.sh"
echo "the application runs $(since "$start") after flux sandbox up"
