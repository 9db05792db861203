package buildflags

import (
	"errors"
	"strings"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/git/snapshot"
	"github.com/fluxkit/flux/internal/git/workspace"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/desired"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/revision"
	"github.com/fluxkit/flux/pkg/diff/revision/clone"
)

// OpenRepository opens the clone in the current directory, or the one that git would use because of
// its environment variables.
func OpenRepository(a *app.App) (*snapshot.Repository, error) {
	repository, err := snapshot.OpenAt(snapshot.Location{Folder: ".", GitDir: a.Env("GIT_DIR"), WorkTree: a.Env("GIT_WORK_TREE")})
	if errors.Is(err, snapshot.ErrNoRepository) {
		return nil, hint.Errorf("run the command in a clone of the repository", "the current directory is not in a Git repository")
	}
	if err != nil && strings.Contains(err.Error(), "objectformat") {
		return nil, hint.Errorf("use a clone with SHA-1 objects", "repositories with SHA-256 objects are not supported, also not by source-controller: %w", err)
	}
	return repository, err
}

// Revisions returns the options for building what revisions of a repository deploy to a cluster.
func (o *Options) Revisions(a *app.App, repository *snapshot.Repository, namespace string, helm desired.HelmOptions) (revision.Options, error) {
	builder, err := o.Builder(a)
	if err != nil {
		return revision.Options{}, err
	}
	options := revision.Options{
		Namespace: namespace, Strict: o.Strict, KubeVersion: helm.KubeVersion, APIVersions: helm.APIVersions,
		Warn: func(text string) { a.UI.Warning("%s", text) }, Folders: map[controllers.ID]string{},
		Hosts: builder.Hosts, Kustomizer: builder.Kustomizer, Login: builder.LoginFor(o.Provider),
		Decrypter: Decryption(a).Decrypter(build.FromObjects(nil)), // local keys only
		At:        func(reference build.GitReference) (revision.Tree, error) { return clone.TreeAt(repository, reference) },
	}
	if o.Untrusted {
		a.UI.Warning("encrypted documents are not decrypted: %s", build.ErrUntrusted)
		options.Decrypter = build.Untrusted{}
	}
	addresses, err := repository.Remotes()
	if err != nil {
		return options, err
	}
	known := map[string]bool{}
	for _, address := range addresses {
		known[workspace.ComparableAddress(address)] = true
	}
	options.Local = func(address string) bool { return known[workspace.ComparableAddress(address)] }
	if options.Vars, options.SecretVars, err = o.Vars(); err != nil {
		return options, err
	}
	for source, folder := range o.Sources {
		reference, err := desired.ParseSource(source)
		if err != nil {
			return options, err
		}
		if options.Folders[reference], err = clone.Inside(repository, folder); err != nil {
			return options, err
		}
	}
	return options, nil
}

// Decryption decrypts with the helper and the keys of the user.
func Decryption(a *app.App) *desired.Decryption {
	return &desired.Decryption{Process: sops.NewProcess(a.Helpers), Env: a.Env, Warn: a.UI.Warning}
}
