#!/bin/sh
# Installs a release of flux in a directory, after its checksum was compared.
#   FLUX_VERSION    version, e.g. 1.0.0
#   FLUX_DIR        directory
#   FLUX_SHA256     expected checksum of the archive (default: that of the release)
#   FLUX_DOWNLOADS  URL of the releases
set -eu

version=${FLUX_VERSION#v}
downloads=${FLUX_DOWNLOADS:-https://github.com/fluxkit/flux/releases/download}
case $version in
'' | *[!0-9A-Za-z.+-]*)
	echo "invalid version '$FLUX_VERSION': set it to a release, e.g. 1.0.0" >&2
	exit 1
	;;
esac

os=$(uname -s | tr '[:upper:]' '[:lower:]')
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*)
	echo "no release of flux for $(uname -m)" >&2
	exit 1
	;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=flux_${version}_${os}_${arch}.tar.gz
for file in "$archive" "flux_${version}_checksums.txt"; do
	curl --fail --silent --show-error --location --retry 3 --max-time 300 --output "$work/$file" "$downloads/v$version/$file" || {
		echo "cannot download $downloads/v$version/$file" >&2
		exit 1
	}
done

expected=${FLUX_SHA256:-$(awk -v name="$archive" '$2 == name { print $1 }' "$work/flux_${version}_checksums.txt")}
actual=$({ sha256sum "$work/$archive" 2>/dev/null || shasum -a 256 "$work/$archive"; } | cut -d ' ' -f 1)
if [ -z "$expected" ] || [ "$actual" != "$expected" ]; then
	echo "the checksum of $archive is $actual, not ${expected:-in the release}" >&2
	exit 1
fi

mkdir -p "$FLUX_DIR"
tar -xzf "$work/$archive" -C "$FLUX_DIR" flux flux-helper
echo "installed flux $version in $FLUX_DIR"
