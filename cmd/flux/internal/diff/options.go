package diff

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/diff/changes"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/compare"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// options holds the flag values.
type options struct {
	buildflags.Options
	changes  changes.Options
	helm     desired.HelmOptions
	chart    desired.ChartOptions
	withHelm bool
	// ignoreNotFound compares an object that does not exist as new.
	ignoreNotFound bool
	progress       bool
	// revision and branch select the revision of the source; both are empty
	// for the current artifact.
	revision, branch string
	// base is the revision to compare with, or "" for the cluster.
	base string
}

// addFieldOwners adds the flag --field-owners.
func addFieldOwners(cmd *cobra.Command, o *options) {
	cmd.Flags().BoolVar(&o.changes.FieldOwners, "field-owners", false, "show the field managers that own each changed field, and when they last changed the object, with -o human or json")
}

// addRevision adds the flags that select a revision of the source.
func addRevision(cmd *cobra.Command, o *options) {
	fs := cmd.Flags()
	fs.StringVar(&o.revision, "revision", "", "source revision to compare: branch, tag, reference or commit of a GitRepository; tag or digest of an OCIRepository")
	fs.StringVar(&o.branch, "branch", "", "branch of the source to compare")
	complete.Revisions(cmd, "revision", "branch")
}

// checkRevision returns an error if the flags that select a revision are
// mutually exclusive.
func (o *options) checkRevision() error {
	switch {
	case o.base != "" && (o.Path != "" || o.Recursive || o.withHelm || o.changes.FieldOwners):
		return hint.Errorf("in a clone, compare revisions with flux diff --base", "--base cannot be used with --path, --recursive, --with-helm or --field-owners")
	case o.revision != "" && o.branch != "":
		return hint.Errorf("set only --branch", "--revision and --branch are mutually exclusive")
	case (o.revision != "" || o.branch != "") && o.Path != "":
		return hint.Errorf("use one of them", "--path and --revision or --branch are mutually exclusive")
	}
	return nil
}

// comparer returns the comparer for the options.
func (o *options) comparer(a *app.App) (*compare.Comparer, error) {
	builder, err := o.Builder(a)
	if err != nil {
		return nil, err
	}
	builder.Announce = o.announce(a)
	c := &compare.Comparer{
		Builder: builder, IgnoreNotFound: o.ignoreNotFound, FieldOwners: o.changes.FieldOwners, Revision: o.revision, Branch: strings.TrimPrefix(o.branch, "refs/heads/"), Decryption: buildflags.Decryption(a),
		Track: func(owner controllers.VersionedID) (count func(done, total int), done func()) {
			line := a.UI.Progress(a.Now, "comparing the objects of %s", owner)
			return line.Count, line.Done
		},
	}
	return c, nil
}

// announce returns the function that reports progress unless --progress-bar=false.
func (o *options) announce(a *app.App) func(format string, args ...any) {
	return func(format string, args ...any) {
		if o.progress {
			a.UI.Action(format, args...)
		}
	}
}

// missing returns the error of a plan, or nil for a missing object with --ignore-not-found. If a
// file contains the object, the remedy suggests that flag.
func (o *options) missing(a *app.App, err error) error {
	var missing *compare.MissingError
	switch {
	case !errors.As(err, &missing):
		return err
	case o.ignoreNotFound:
		a.UI.Success("%s: there is nothing to compare", missing)
		return nil
	case o.File == "":
		return err
	}
	remedy := "add --ignore-not-found if the object is new"
	if similar := a.Hint(err); similar != "" {
		remedy = similar + "; " + remedy
	}
	return &hint.Error{Err: err, Hint: remedy}
}

// add adds the flags for the output and the exit code.
func (o *options) add(cmd *cobra.Command) {
	o.changes.Add(cmd)
	cmd.Flags().BoolVar(&o.progress, "progress-bar", true, "print progress on standard error")
}
