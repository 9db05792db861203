#!/bin/sh
# Downloads the sandbox of a release of flux, runs flux test, and writes reports to a directory.
#   FLUX_VERSION   version of flux and its sandbox
#   FLUX_PATH      directory of the cluster (default: the only detected cluster directory)
#   FLUX_REVISION  revision to test (default HEAD)
#   FLUX_BASE      revision to reconcile first
#   FLUX_FILES     test files, one per line (default: all test files in the repository)
#   FLUX_ARGS      additional flags, one per line
#   FLUX_RELEASES  URL of the releases, for a mirror
#   FLUX_TRUSTED_ROOT  trusted_root.json of Sigstore (default: fetched over the network)
#   FLUX_REPORTS   directory for flux-test.txt, flux-test.json and flux-test.xml (JUnit)
set -eu

report=$FLUX_REPORTS/flux-test
mkdir -p "$FLUX_REPORTS"
rm -f "$report.txt" "$report.json" "$report.xml" "$report.annotations"

set -- test --revision "${FLUX_REVISION:-HEAD}" -o human -o "human=$report.txt" -o "json=$report.json" -o "junit=$report.xml"
[ "${GITHUB_ACTIONS:-}" != true ] || set -- "$@" -o "github=$report.annotations"
[ -z "${FLUX_PATH:-}" ] || set -- "$@" --path "$FLUX_PATH"
[ -z "${FLUX_BASE:-}" ] || set -- "$@" --base "$FLUX_BASE"
newline='
'
IFS=$newline
set -f # do not expand patterns
for arg in ${FLUX_ARGS:-}; do
	set -- "$@" "$arg"
done
[ -z "${FLUX_FILES:-}" ] || set -- "$@" --
for file in ${FLUX_FILES:-}; do
	set -- "$@" "$file"
done
set +f
unset IFS

code=0
# Without a sandbox, the result is undetermined.
flux sandbox pull --version "$FLUX_VERSION" ${FLUX_RELEASES:+--releases "$FLUX_RELEASES"} ${FLUX_TRUSTED_ROOT:+--trusted-root "$FLUX_TRUSTED_ROOT"} || code=2
[ "$code" -ne 0 ] || flux "$@" || code=$?
[ ! -f "$report.annotations" ] || cat "$report.annotations"
[ -z "${GITHUB_OUTPUT:-}" ] || echo "exit-code=$code" >>"$GITHUB_OUTPUT"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$report.txt" ]; then
	# Indented lines are displayed verbatim, regardless of names in the repository.
	{ printf '### Flux test\n\n' && sed 's/^/    /' "$report.txt" && echo; } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
