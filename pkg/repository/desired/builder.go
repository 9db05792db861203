// Package desired finds and builds the desired state of Kustomizations and
// HelmReleases: from files, from a Git work tree, and from the sources of a cluster.
package desired

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/web/egress"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/repository/upstream"
)

// Options configure a build.
type Options struct {
	// Path is the directory to build, "" for spec.path in the work tree of the current directory.
	Path string
	// File is the file with the object to build, "" for the live object.
	File string
	// Sources maps KIND/NAMESPACE/NAME to the directories of sources.
	Sources map[string]string
	// Ignore lists the patterns of paths to exclude.
	Ignore []string
	// Recursive also builds the Kustomizations in the build.
	Recursive bool
	// Strict rejects variables that have neither a value nor a default.
	Strict bool
	// Set and VarsFile are substitution variables.
	Set      map[string]string
	VarsFile string
	// DryRun builds without a cluster.
	DryRun bool
	// Hosts lists the hosts that may be accessed over HTTP even if only untrusted files reference them.
	Hosts egress.Hosts
	// Provider is the cloud provider to log in with, "" for none.
	Provider string
	// Mappings lists the directories that replace sources, and Inputs the inputs of ResourceSetInputProviders.
	Mappings []mapped.Mapping
	Inputs   map[controllers.ID][]map[string]any
	// Untrusted is set to build untrusted files: no Secret is read, and nothing is decrypted.
	Untrusted bool
}

// Builder builds what its options select.
type Builder struct {
	Options
	Cluster
	// Kustomizer runs kustomize, and Charts returns the chart renderer.
	Kustomizer build.Kustomizer
	Charts     func() (charts.Renderer, error)
	// Cache stores renderings between runs. It may be nil.
	Cache build.Cache
	// Clone returns a function that opens the clone of a work tree. It may be nil.
	Clone func(root string) func() (Clone, error)
	// Login and GitLogin return credentials of cloud providers.
	Login    upstream.Login
	GitLogin upstream.GitLogin
	// ReadFile reads a file, or standard input for "-".
	ReadFile func(ctx context.Context, file string) ([]byte, error)
	// Warn reports a restriction of the build, and Announce a step.
	Warn, Announce func(format string, args ...any)
}

// Clone contains the files of a repository at other references than its work tree.
type Clone interface {
	repository.Contents
	// Submodules adds the files of submodules to a tree of the clone.
	Submodules(ctx context.Context, tree repository.Tree) (repository.Tree, error)
}

// lookup returns the lookup of ConfigMaps and Secrets: the cluster, or the work tree with Options.DryRun.
// With Options.Recursive, it only finds objects that the built Kustomizations apply, because other files
// may be templates, or belong to another cluster.
func (b *Builder) lookup(work git.Workspace) build.Lookup {
	switch {
	case !b.DryRun && b.Untrusted:
		return build.LookupFunc(b.publicData)
	case !b.DryRun:
		return build.LookupFunc(b.Data)
	case work.Git && !b.Recursive:
		return build.InRepository(work.Tree())
	}
	return build.FromObjects(nil)
}

// publicData returns the data of a ConfigMap.
func (b *Builder) publicData(ctx context.Context, object controllers.ID) (map[string][]byte, error) {
	if object.Kind == controllers.Secret {
		return nil, fmt.Errorf("not read: %w", build.ErrUntrusted)
	}
	return b.Data(ctx, object)
}

// missing returns a handler that continues a build with Options.DryRun with a warning, because ConfigMaps and Secrets may
// exist only on the cluster. The warning contains flag as the remedy, if set.
func (b *Builder) missing(what, flag string) func(controllers.ID, error) bool {
	if !b.DryRun && !b.Untrusted {
		return nil
	}
	warn := once(b.Warn)
	return func(object controllers.ID, err error) bool {
		if !b.DryRun && !errors.Is(err, build.ErrUntrusted) {
			return false
		}
		if flag == "" {
			warn("skipping the %s of %s: %s", what, object, err)
		} else {
			warn("skipping the %s of %s: %s; set them with %s", what, object, err, flag)
		}
		return true
	}
}

// once returns a function that passes each distinct text to warn once. It is safe
// for concurrent use.
func once(warn func(format string, args ...any)) func(format string, args ...any) {
	var mu sync.Mutex
	known := map[string]bool{}
	return func(format string, args ...any) {
		text := redact.Text(fmt.Sprintf(format, args...))
		mu.Lock()
		defer mu.Unlock()
		if !known[text] {
			warn("%s", text)
		}
		known[text] = true
	}
}
