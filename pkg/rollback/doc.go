// Package rollback pins the source of a Kustomization, or the chart of a HelmRelease, to an earlier revision, and
// restores the previous state.
package rollback
