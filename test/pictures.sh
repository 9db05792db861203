#!/usr/bin/env bash
# Generates the pictures in docs/pictures: diagrams from the cluster of the demo, and the report of a
# pull request in headless Chromium. Names of commits and pods differ on every cluster: a diagram that
# differs only in these is not replaced.
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

# A pull request that updates an image, adds a Service and deletes a volume.
change() {
	local repository=$work/fleet
	git init --quiet --initial-branch=main "$repository"
	mkdir -p "$repository/clusters/demo" "$repository/apps/my-app"
	flux create source git flux-system --url=https://git.example.com/fleet --branch=main --export >"$repository/clusters/demo/my-app.yaml"
	flux create kustomization my-app --source=GitRepository/flux-system --path=./apps/my-app --prune --export >>"$repository/clusters/demo/my-app.yaml"
	kubectl create deployment my-app -n default --image=ghcr.io/stefanprodan/podinfo:6.9.0 --replicas=3 \
		--dry-run=client -o yaml >"$repository/apps/my-app/deployment.yaml"
	cat >"$repository/apps/my-app/volume.yaml" <<-'YAML'
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: my-app, namespace: default}
		spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
	YAML
	git -C "$repository" add --all
	git -C "$repository" -c user.name=demo -c user.email=demo@example.com commit --quiet --message "Deploy my-app"
	sed -i -e 's/6\.9\.0/7.0.0/' -e 's/replicas: 3/replicas: 2/' "$repository/apps/my-app/deployment.yaml"
	kubectl create service clusterip my-app -n default --tcp=80:9898 --dry-run=client -o yaml >"$repository/apps/my-app/service.yaml"
	rm "$repository/apps/my-app/volume.yaml"
	# The exit code 1 says that there are changes.
	(cd "$repository" && flux diff --base main --path clusters/demo -o html="$work/diff.html") || [ $? -eq 1 ]
}

chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
if [[ -z $chromium ]]; then
	echo "docs/pictures/diff.png is unchanged: Chromium not found"
	exit
fi
change
"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,765 \
	--screenshot="$root/docs/pictures/diff.png" "file://$work/diff.html" 2>/dev/null
echo "docs/pictures/diff.png is updated"
