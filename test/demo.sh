#!/usr/bin/env bash
# Shows the main workflow: starts a cluster, bootstraps Flux from a Git
# repository, commits an application and waits until it runs. The script can be
# repeated; the sandbox stays up.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="$root/bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bold="" plain=""
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() {
	printf '%s$ %s%s\n' "$bold" "$*" "$plain"
	"$@"
}

say "A Kubernetes cluster, a Git server and a registry on this machine"
show flux sandbox up
eval "$(flux sandbox env)"
show flux check --pre

say "Bootstrap Flux from a Git repository"
flux sandbox git create fleet
export GIT_PASSWORD=not-checked-until-credentials-are-set
started=$SECONDS
show flux bootstrap git --url="$FLUX_SANDBOX_GIT_URL/fleet.git" --allow-insecure-http \
	--branch=main --path=clusters/demo --username=demo --token-auth --silent
echo "bootstrap took $((SECONDS - started)) s"

say "Commit an application"
git clone --quiet "$FLUX_SANDBOX_GIT_URL/fleet.git" "$work/fleet"
cd "$work/fleet"
mkdir -p apps/my-app
cat >apps/my-app/deployment.yaml <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: my-app
  namespace: default
spec:
  replicas: 3
  selector:
    matchLabels: {app: my-app}
  template:
    metadata:
      labels: {app: my-app}
    spec:
      containers:
        - name: app
          image: ghcr.io/stefanprodan/podinfo:6.9.0
YAML
cat >clusters/demo/my-app.yaml <<'YAML'
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: my-app
  namespace: flux-system
spec:
  interval: 10m
  path: ./apps/my-app
  prune: true
  wait: true
  sourceRef:
    kind: GitRepository
    name: flux-system
YAML
git add --all
if git diff --cached --quiet; then
	echo "the application is already committed"
else
	git -c user.name=demo -c user.email=demo@example.com commit --quiet --message "Run my-app"
	show git push --quiet
fi
cd "$root"

say "Reconcile the commit"
show flux reconcile kustomization flux-system --with-source
show flux reconcile kustomization my-app

say "Inspect the result"
show flux get all -A
show flux tree kustomization my-app -o wide

cat <<'TEXT'

The sandbox is still running. To use it in this shell:

  export PATH="$PWD/bin:$PATH"
  eval "$(flux sandbox env)"
  flux get all -A
  kubectl get pods -A

To stop it:

  flux sandbox down
TEXT
