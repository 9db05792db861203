package test

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/pkg/testrun"
)

type options struct {
	buildflags.Secrets
	path, revision, base string
	mappings             []string
	vendor               string
	allowNetwork         bool
	// outputs are the formats of the report; none is human on standard output.
	outputs []command.Output
}

// addRevisions adds the flags that select the cluster and the revisions of its repository.
func (o *options) addRevisions(cmd *cobra.Command, revision, base string) {
	fs := cmd.Flags()
	fs.StringVar(&o.path, "path", "", "directory of the cluster in its repository (default: the only one with gotk-sync.yaml)")
	fs.StringVar(&o.revision, "revision", "", revision)
	fs.StringVar(&o.base, "base", "", base)
	complete.Revisions(cmd, "revision", "base")
}

// load reads a revision of the repository.
func load(ctx context.Context, path, revision string) (*testrun.Repository, func() error, error) {
	r, done, err := buildflags.Served(ctx, path, revision)
	if err == nil {
		err = r.Load(ctx)
	}
	return r, done, err
}
