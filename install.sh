#!/bin/sh
# Installs a release of flux, flux-helper and flux-ui after verifying the checksum of the archive. To also verify
# the signature of the checksums, see docs/release.md, and set FLUX_SHA256.
#
#   sh install.sh
#
#   FLUX_VERSION   version, e.g. 1.0.0 (default: the latest)
#   FLUX_DIR       directory (default: /usr/local/bin if it is writable, else ~/.local/bin)
#   FLUX_SANDBOX   1 also installs the sandbox binaries
#   FLUX_SHA256    expected checksum of the flux archive (default: the checksum in the release)
#   FLUX_RELEASES  URL of the releases, for a mirror
set -eu

releases=${FLUX_RELEASES:-https://github.com/fluxkit/flux/releases}

fail() {
	echo "$*" >&2
	exit 1
}

fetch() {
	curl --fail --silent --show-error --location --retry 3 --max-time 600 "$@"
}

command -v curl >/dev/null || fail "curl not found: install it, or download an archive from $releases"

version=${FLUX_VERSION-}
if [ -z "$version" ]; then
	# The latest release redirects to its tag.
	latest=$(fetch --output /dev/null --write-out '%{url_effective}' "$releases/latest") || fail "cannot read $releases/latest: set FLUX_VERSION"
	version=${latest##*/}
fi
version=${version#v}
case $version in
[0-9]*) ;;
*) fail "invalid version '$version': set FLUX_VERSION to a release, e.g. 1.0.0" ;;
esac
case $version in
*[!0-9A-Za-z.+-]*) fail "invalid version '$version': set FLUX_VERSION to a release, e.g. 1.0.0" ;;
esac

os=$(uname -s | tr '[:upper:]' '[:lower:]')
case $os in
linux | darwin) ;;
*) fail "no release of flux for $(uname -s) in this script: download an archive from $releases" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "no release of flux for $(uname -m)" ;;
esac

directory=${FLUX_DIR-}
if [ -z "$directory" ]; then
	directory=/usr/local/bin
	[ -w "$directory" ] || directory=$HOME/.local/bin
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

checksums=flux_${version}_checksums.txt
fetch --output "$work/$checksums" "$releases/download/v$version/$checksums" || fail "cannot download $releases/download/v$version/$checksums"

# unpack downloads an archive, verifies its checksum and unpacks it into a temporary directory.
unpack() { # ARCHIVE EXPECTED
	archive=$1
	expected=${2:-$(awk -v name="$archive" '$2 == name { print $1 }' "$work/$checksums")}
	fetch --output "$work/$archive" "$releases/download/v$version/$archive" || fail "cannot download $releases/download/v$version/$archive"
	actual=$({ sha256sum "$work/$archive" 2>/dev/null || shasum -a 256 "$work/$archive"; } | cut -d ' ' -f 1)
	if [ -z "$expected" ] || [ "$actual" != "$expected" ]; then
		fail "the checksum of $archive is $actual, not ${expected:-in the release}"
	fi
	mkdir -p "$work/new"
	tar -xzf "$work/$archive" -C "$work/new"
}

unpack "flux_${version}_${os}_${arch}.tar.gz" "${FLUX_SHA256-}"
programs="flux-helper flux"
[ ! -e "$work/new/flux-ui" ] || programs="flux-ui $programs" # earlier releases do not contain it
if [ "${FLUX_SANDBOX-}" = 1 ]; then
	unpack "flux-sandbox_${version}_${os}_${arch}.tar.gz" ""
	programs="flux-sandbox kubectl controllers $programs"
fi

# All archives were downloaded and verified. flux is installed last, so that it never runs with an older helper.
# Running programs are replaced, not overwritten.
mkdir -p "$directory" || fail "cannot create $directory: set FLUX_DIR"
for program in $programs; do
	rm -rf "$directory/.$program.new"
	if ! cp -R "$work/new/$program" "$directory/.$program.new"; then
		rm -rf "$directory/.$program.new"
		fail "cannot write to $directory: set FLUX_DIR to another directory"
	fi
	[ ! -d "$directory/$program" ] || rm -rf "${directory:?}/$program"
	mv -f "$directory/.$program.new" "$directory/$program"
done
echo "installed flux $version in $directory"
case :$PATH: in
*:"$directory":*) ;;
*) echo "add it to your PATH: export PATH=\"$directory:\$PATH\"" ;;
esac
