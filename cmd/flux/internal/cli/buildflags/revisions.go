package buildflags

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/clone"
	"github.com/fluxkit/flux/pkg/repository/desired"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// OpenRepository opens the clone in the current directory, or the one in GIT_DIR and GIT_WORK_TREE,
// like git.
func OpenRepository(a *app.App) (*git.Clone, error) {
	repository, err := git.OpenAt(git.Location{Folder: ".", GitDir: a.Env("GIT_DIR"), WorkTree: a.Env("GIT_WORK_TREE")})
	if errors.Is(err, git.ErrNoRepository) {
		return nil, hint.Errorf("run the command in a clone of the repository", "the current directory is not in a Git repository")
	}
	if err != nil && strings.Contains(err.Error(), "objectformat") {
		return nil, hint.Errorf("use a clone with SHA-1 objects", "flux and source-controller do not support repositories with SHA-256 objects: %w", err)
	}
	return repository, err
}

// Graph returns the options for building the objects that revisions of a clone deploy, without cluster access.
func (o *Options) Graph(ctx context.Context, a *app.App, at *git.Clone, namespace string, helm desired.HelmOptions) (repository.Options, error) {
	options := repository.Options{
		Namespace: namespace, Folders: map[controllers.ID]repository.Folder{}, Inputs: o.Inputs,
		Contents: &clone.Contents{Clone: at}, Submodules: clone.Submodules(ctx, at), Optional: at.Optional,
	}
	builder, err := o.Builder(a)
	if err != nil {
		return options, err
	}
	local := builder.Mapped(options.Contents)
	options.Contents = local
	decrypter := Decryption(a).Decrypter(build.FromObjects(nil)) // local keys only
	if o.Untrusted {
		a.UI.Warning("encrypted documents are not decrypted: %s", build.ErrUntrusted)
		decrypter = build.Untrusted{}
	}
	options.Build = build.Options{
		Strict: o.Strict, KeepUnset: true, Kustomizer: builder.Kustomizer, Cache: builder.Cache,
		Decrypt: func(*unstructured.Unstructured, build.Lookup) build.Decrypter { return decrypter },
	}
	options.Charts = charts.Options{
		KubeVersion: helm.KubeVersion, APIVersions: helm.APIVersions, Hosts: builder.Hosts, Kustomizer: builder.Kustomizer, Login: builder.Login.For(o.Provider),
		Local: local.Chart,
	}
	if options.Build.Vars, options.Build.SecretVars, err = o.Vars(); err != nil {
		return options, err
	}
	if options.Remotes, err = at.Remotes(); err != nil {
		return options, err
	}
	for source, folder := range o.Sources {
		id, err := desired.ParseSource(source)
		if err != nil {
			return options, err
		}
		inside, err := clone.Inside(at, folder)
		if err != nil {
			return options, err
		}
		options.Folders[id] = repository.Folder{Path: inside}
	}
	return options, nil
}

// Decryption returns the settings for decrypting files in flux-helper with the user's keys.
func Decryption(a *app.App) *upstream.Decryption {
	return &upstream.Decryption{Pool: a.Helpers, Env: a.Env, Warn: a.UI.Warning}
}
