package vendor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun"
	"github.com/fluxkit/flux/pkg/testrun/sources"
	"github.com/fluxkit/flux/pkg/testrun/vendored"
)

// Options select the cluster and the revisions of its repository, and the keys that decrypt its files.
type Options struct {
	buildflags.Secrets
	Path, Revision, Base string
}

// AddRevisions adds the flags that select the cluster and the revisions of its repository.
func (o *Options) AddRevisions(cmd *cobra.Command, revision, base string) {
	fs := cmd.Flags()
	fs.StringVar(&o.Path, "path", "", "cluster directory in the repository (default: the only detected one)")
	fs.StringVar(&o.Revision, "revision", "", revision)
	fs.StringVar(&o.Base, "base", "", base)
	complete.Revisions(cmd, "revision", "base")
}

// Repositories reads the revision and, if set, the base.
func (o *Options) Repositories(ctx context.Context) (head, base *sources.Repository, done func() error, err error) {
	head, closeHead, err := load(ctx, o.Path, o.Revision)
	if err != nil || o.Base == "" {
		return head, nil, closeHead, err
	}
	base, closeBase, err := load(ctx, o.Path, o.Base)
	if err != nil {
		err = fmt.Errorf("the base %s: %w", o.Base, err)
	}
	return head, base, func() error { return errors.Join(closeHead(), closeBase()) }, err
}

// load reads a revision of the repository.
func load(ctx context.Context, path, revision string) (*sources.Repository, func() error, error) {
	r, done, err := testrun.Open(ctx, path, revision)
	if err == nil {
		err = r.Load(ctx)
	}
	return r, done, err
}

// building returns the options for building Kustomizations with the keys of the user.
func (o *Options) building(a *app.App) (build.Options, error) {
	if _, err := o.AgeKey(a); err != nil {
		return build.Options{}, err
	}
	decryption := buildflags.Decryption(a)
	decryption.Env = func(name string) string {
		if name == "SOPS_AGE_KEY_FILE" && o.AgeKeyFile != "" {
			return o.AgeKeyFile
		}
		return a.Env(name)
	}
	return build.Options{Kustomizer: isolated.NewKustomizer(a.Helpers, nil), Decrypt: func(*unstructured.Unstructured, build.Lookup) build.Decrypter {
		if o.Untrusted {
			return build.Untrusted{}
		}
		return decryption.Decrypter(build.FromObjects(nil))
	}}, nil
}

// Serve serves the vendored sources in a directory, except those that --map replaces.
func (o *Options) Serve(ctx context.Context, a *app.App, directory string, r *testrun.Run) (err error) {
	folder, err := vendored.Open(directory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	given := r.Mappings
	serves := func(kind, url string) bool {
		return slices.ContainsFunc(given, func(m mapped.Mapping) bool { return m.Serves(ctx, kind, url) })
	}
	options, err := o.building(a)
	if err != nil {
		return err
	}
	for _, repository := range []*sources.Repository{r.Repository, r.Head} {
		if repository != nil {
			if err := folder.Prepare(ctx, repository, options, serves); err != nil {
				return err
			}
		}
	}
	r.Mappings = append(given, folder.Mappings(serves)...)
	return nil
}
