#!/usr/bin/env bash
# Generates the pictures in docs/pictures: diagrams and the dashboard from the cluster of the demo, and the
# report of a pull request in headless Chromium. Names of commits and pods, ports and ages differ on every
# cluster: a picture that differs only in these is not replaced.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
sandbox=$("$root/bin/flux" sandbox env)
eval "$sandbox"
export PATH="$root/bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# nameless prints a picture without generated names, ports and ages.
nameless() {
	sed -E 's/@sha1:[0-9a-f]+/@sha1:X/g; s/(my-app-[0-9a-f]{8,10})-[0-9a-z]{5}\b/\1-X/g; s/127\.0\.0\.1:[0-9]+…*/X/; s/\b[0-9]+[smh]+ *[0-9]*s? /AGE /' "$1"
}

# keep replaces the picture with the new one if they differ.
keep() {
	local picture=$1 old=$root/docs/pictures/$1
	if [[ -f $old ]] && diff <(nameless "$old") <(nameless "$work/$picture") >/dev/null; then
		echo "docs/pictures/$picture is unchanged"
		return
	fi
	mkdir -p "$root/docs/pictures"
	cp "$work/$picture" "$old"
	echo "docs/pictures/$picture is updated"
}

draw() {
	local picture=$1
	shift
	flux "$@" --output svg >"$work/$picture"
	keep "$picture"
}

draw deps.svg deps --all-namespaces
draw tree.svg tree kustomization my-app

# A source that fails, with two Kustomizations that wait for it, and a suspended Kustomization.
failing() {
	flux create source git webshop --url="$FLUX_SANDBOX_GIT_URL/fleet.git" --branch=release --secret-ref=flux-system --export
	flux create kustomization webshop-database --source=GitRepository/webshop --path=./database --prune --export
	flux create kustomization webshop-frontend --source=GitRepository/webshop --path=./frontend --prune --depends-on=webshop-database --export
	flux create kustomization monitoring --source=GitRepository/flux-system --path=./apps/my-app --export | sed 's/^spec:/&\n  suspend: true/'
}

failing >"$work/failing.yaml"
kubectl apply --filename "$work/failing.yaml" >/dev/null
(cd "$root" && go run ./test/screenshot -size 100x20 -until '1 failed, 2 waiting, 1 suspended, 3 ready(.|\n)*Fix:(.|\n)*$' \
	flux ui) >"$work/dashboard.svg"
kubectl delete --filename "$work/failing.yaml" >/dev/null
keep dashboard.svg

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
