#!/bin/sh
# Runs flux diff for a pull request, and writes reports to a directory.
#   FLUX_PATHS        directories of clusters, or patterns, one per line (default: all detected cluster directories)
#   FLUX_BASE         revision to compare with (default auto)
#   FLUX_FAIL_ON      change, danger or error (default danger)
#   FLUX_ALLOW        accepted dangers, separated by commas
#   FLUX_COMMENT      true to comment on the pull request (default true)
#   FLUX_COMMENT_KEY  name of the comment
#   FLUX_STATUS       name of a commit status
#   FLUX_ARGS         additional flags, one per line
#   FLUX_REPORTS      directory for flux.md and flux.sarif
set -eu

mkdir -p "$FLUX_REPORTS"
rm -f "$FLUX_REPORTS/flux.md" "$FLUX_REPORTS/flux.sarif"

set -- diff --base "${FLUX_BASE:-auto}" --fetch --fail-on "${FLUX_FAIL_ON:-danger}" \
	-o human -o "github=$FLUX_REPORTS/flux.md" -o "sarif=$FLUX_REPORTS/flux.sarif"
[ -z "${FLUX_ALLOW:-}" ] || set -- "$@" --allow "$FLUX_ALLOW"
[ "${FLUX_COMMENT:-true}" != true ] || set -- "$@" --comment
[ -z "${FLUX_COMMENT_KEY:-}" ] || set -- "$@" --comment-key "$FLUX_COMMENT_KEY"
[ -z "${FLUX_STATUS:-}" ] || set -- "$@" --status "$FLUX_STATUS"
newline='
'
IFS=$newline
set -f # flux expands patterns
for path in ${FLUX_PATHS:-}; do
	set -- "$@" --path "$path"
done
for arg in ${FLUX_ARGS:-}; do
	set -- "$@" "$arg"
done
set +f
unset IFS

code=0
flux "$@" || code=$?
[ -z "${GITHUB_OUTPUT:-}" ] || echo "exit-code=$code" >>"$GITHUB_OUTPUT"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$FLUX_REPORTS/flux.md" ]; then
	cat "$FLUX_REPORTS/flux.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
