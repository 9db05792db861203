// Package sources loads the repository of a cluster, and serves it and the mappings that replace its sources: Git
// repositories, Helm repositories, buckets and OCI artifacts.
package sources

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/layout"
	"github.com/fluxkit/flux/pkg/repository/mapped"
)

// Repository is the repository of a cluster.
type Repository struct {
	// Tree contains the files that are served in place of the remote repository.
	Tree fs.FS
	// Path is the directory of the cluster in Tree, or "" for the only bootstrapped directory.
	Path string
	// Remotes and Branches are as in repository.Identity.
	Remotes, Branches []string

	// Namespace, Version, Components and WatchAll describe the installation. Version is a version or a range, or "" if the
	// cluster directory contains none.
	Namespace  string
	Version    string
	Components []string
	WatchAll   bool
	// Sync holds the source and the Kustomization of the cluster directory.
	Sync []*unstructured.Unstructured
	// Instance is the FluxInstance that installs Flux, nil if there is none.
	Instance *unstructured.Unstructured

	files map[string][]byte
	// folder is the directory with the bootstrap files, or "".
	folder string
	// assumed is set if Sync contains the objects that bootstrap would create instead of objects in the repository.
	assumed bool
}

// Empty returns a repository without files and with the default installation.
func Empty() (*Repository, error) {
	r := &Repository{}
	return r, r.readInstallation()
}

// Load reads all files, and finds the cluster and its installation.
func (r *Repository) Load(ctx context.Context) error {
	var err error
	if r.files, err = mapped.ReadFiles(ctx, r.Tree); err != nil {
		return fmt.Errorf("reading the repository: %w", err)
	}
	maps.DeleteFunc(r.files, func(name string, _ []byte) bool { return strings.HasPrefix(name, mapped.VendorFolder+"/") })
	if err := r.find(ctx); err != nil {
		return err
	}
	if err := r.readInstallation(); err != nil || r.folder != "" {
		return err
	}
	return r.readInstance(ctx)
}

// find sets the directories of the cluster and of its installation.
func (r *Repository) find(ctx context.Context) error {
	clusters, others, err := layout.Roots(ctx, r.Tree)
	if err != nil {
		return err
	}
	switch {
	case r.Path != "":
		if info, err := fs.Stat(r.Tree, path.Clean(r.Path)); err != nil || !info.IsDir() {
			return hint.Errorf(sourcetree.PathRemedy(clusters), "--path %s: no such directory in the repository", hint.Quote(r.Path))
		}
		r.Path = path.Clean(r.Path)
	case len(clusters) == 1:
		r.Path = clusters[0]
	case len(clusters) == 0:
		return layout.NotFound(others)
	default:
		return hint.Errorf("select one with --path", "the repository has several clusters: %s", strings.Join(clusters, ", "))
	}
	for name := range r.files {
		if folder := path.Dir(name); path.Base(name) == layout.SyncFile && path.Dir(folder) == r.Path {
			r.folder = folder
		}
	}
	return nil
}

var header = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^# (Flux Version|Components): (.+)$`) })

// readInstallation reads the files that bootstrap has written. For a directory without them, it uses the defaults of
// install, and the source and the Kustomization that bootstrap would create.
func (r *Repository) readInstallation() error {
	r.Namespace, r.Components, r.WatchAll = manifests.Defaults().Namespace, controllers.Names(func(controllers.Controller) bool { return true }), true
	if r.folder == "" {
		r.Sync = r.defaultSync()
		return nil
	}
	components := r.files[path.Join(r.folder, layout.ComponentsFile)]
	for _, m := range header().FindAllSubmatch(components, 2) {
		value := strings.TrimSpace(string(m[2]))
		if string(m[1]) == "Flux Version" {
			r.Version = value
			continue
		}
		r.Components = strings.Split(value, ",")
	}
	r.WatchAll = !bytes.Contains(components, []byte("--watch-all-namespaces=false"))
	name := path.Join(r.folder, layout.SyncFile)
	var err error
	if r.Sync, err = sourcetree.ReadManifests(bytes.NewReader(r.files[name])); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if len(r.Sync) == 0 { // bootstrap has not written it yet
		r.assumed, r.Sync = true, r.defaultSync()
		r.files[name] = nil
		for _, o := range r.Sync {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				return err
			}
			r.files[name] = append(append(r.files[name], "---\n"...), text...)
		}
		return nil
	}
	for _, o := range r.Sync {
		if o.GetNamespace() != "" {
			r.Namespace = o.GetNamespace()
		}
	}
	return nil
}

// Distribution returns the newest embedded Flux version that the repository selects.
func (r *Repository) Distribution() (controllers.Distribution, error) {
	if r.Version == "" {
		return controllers.DefaultDistribution(), nil
	}
	d, _, ok := controllers.Select(r.Version)
	if !ok {
		return d, hint.Errorf("set --flux-version to one of "+strings.Join(controllers.EmbeddedVersions(), ", "), "unsupported Flux version in the repository: %s", r.Version)
	}
	return d, nil
}

// Identity identifies the sources that refer to the repository at the served revision.
func (r *Repository) Identity() repository.Identity {
	i := repository.Identity{Remotes: slices.Clone(r.Remotes), Branches: r.Branches}
	for _, source := range r.Sync {
		url, is, _ := unstructured.NestedString(source.Object, "spec", "url")
		if _, applies, _ := unstructured.NestedString(source.Object, "spec", "path"); !is || applies {
			continue
		}
		if r.folder != "" && !r.assumed {
			i.Own = source
		} else {
			i.Remotes = append(i.Remotes, git.ComparableAddress(url))
		}
	}
	return i
}

// defaultSync returns the objects that bootstrap creates for the cluster.
func (r *Repository) defaultSync() []*unstructured.Unstructured {
	branch := "main"
	if len(r.Branches) > 0 {
		branch = r.Branches[0]
	}
	source, root := layout.DefaultSync(r.Namespace, r.Path, branch)
	return []*unstructured.Unstructured{source, root}
}

// Add adds a file to the files of Tree.
func (r *Repository) Add(name string, content []byte) { r.files[name] = content }

// Served returns the files with the installation of a Flux version.
func (r *Repository) Served(set *manifests.Set) (map[string][]byte, error) {
	files := maps.Clone(r.files)
	if r.folder == "" {
		return files, nil
	}
	text, err := set.YAML()
	files[path.Join(r.folder, layout.ComponentsFile)] = text
	return files, err
}

// Mentions reports whether a file contains a text.
func (r *Repository) Mentions(text string) bool {
	for _, content := range r.files {
		if bytes.Contains(content, []byte(text)) {
			return true
		}
	}
	return false
}

// FileOf returns the file with the manifest of an object, or "" if there is not exactly one.
func (r *Repository) FileOf(ctx context.Context, kind, name string) string {
	found, err := sourcetree.Search(ctx, r.Tree, []string{kind, name}, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name
	})
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0].File
}
