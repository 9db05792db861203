package compare

import (
	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/desired"
)

// Options are the flags of diff kustomization.
type Options struct {
	desired.BuildOptions
	IgnoreNotFound bool
	Progress       bool
	// ExitCode is the flag --exit-code, and FailOn the lowest level that exits with 1: change, danger
	// or error.
	ExitCode bool
	FailOn   string
	// Allow are the IDs of the dangers that do not count.
	Allow []string
	// Outputs are the formats of the report; none is human on standard output.
	Outputs []Output
	// Images reports only the images that change.
	Images bool
	// IgnoreFields are the patterns of fields that do not count as changes.
	IgnoreFields []string
	// revision and branch select the revision of the source; both are empty
	// for the current artifact.
	revision, branch string
}

// Output is a format and the file that it is written to, or "" for standard output.
type Output struct{ Format, File string }

// Announce reports progress unless --progress-bar=false.
func Announce(a *app.App, o *Options, format string, args ...any) {
	if o.Progress {
		a.UI.Action(format, args...)
	}
}

// ReleaseOptions are the flags of diff helmrelease.
type ReleaseOptions struct {
	Options
	desired.HelmOptions
	desired.ChartOptions
}
