package rehearse

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The files that bootstrap writes into the folder of a cluster.
const (
	componentsFile = "gotk-components.yaml"
	syncFile       = "gotk-sync.yaml"
)

// Repository is the repository of a cluster.
type Repository struct {
	// Tree has the files that are served in place of the remote repository.
	Tree fs.FS
	// Path is the folder of the cluster in Tree, or "" for the only one that was bootstrapped.
	Path string
	// Remotes are the addresses of the repository, as workspace.ComparableAddress returns them.
	Remotes []string

	files map[string][]byte
	// folder is the folder with the files of bootstrap, "" without one.
	folder     string
	namespace  string
	version    string
	components []string
	watchAll   bool
	// sync are the source and the Kustomization of the folder of the cluster.
	sync []*unstructured.Unstructured
}

// load reads all files, and finds the cluster and its installation.
func (r *Repository) load(ctx context.Context) error {
	r.files = map[string][]byte{}
	limits := budget.New(budget.Default())
	err := fs.WalkDir(r.Tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil // source-controller omits these as well
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if err := limits.File(name, info.Size()); err != nil {
			return err
		}
		r.files[name], err = fs.ReadFile(r.Tree, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the repository: %w", err)
	}
	if err := r.find(); err != nil {
		return err
	}
	return r.readInstallation()
}

// find sets the folder of the cluster and that of its installation.
func (r *Repository) find() error {
	var clusters []string
	for name := range r.files {
		if path.Base(name) != syncFile {
			continue
		}
		folder := path.Dir(name)
		if cluster := path.Dir(folder); r.Path == "" || cluster == path.Clean(r.Path) {
			clusters = append(clusters, cluster)
			r.folder = folder
		}
	}
	slices.Sort(clusters)
	switch {
	case r.Path != "":
		if info, err := fs.Stat(r.Tree, path.Clean(r.Path)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a directory of the repository", r.Path)
		}
		r.Path = path.Clean(r.Path)
	case len(clusters) == 1:
		r.Path = clusters[0]
	case len(clusters) == 0:
		return hint.Errorf("set it with --path", "no %s found: the directory of the cluster is not known", syncFile)
	default:
		return hint.Errorf("select one with --path", "the repository has several clusters: %s", strings.Join(clusters, ", "))
	}
	return nil
}

var header = regexp.MustCompile(`(?m)^# (Flux Version|Components): (.+)$`)

// readInstallation reads what bootstrap has written. A folder without it gets the defaults of
// install, and a source and a Kustomization as bootstrap creates them.
func (r *Repository) readInstallation() error {
	r.namespace, r.components, r.watchAll = manifests.Defaults().Namespace, controllers.Names(func(controllers.Controller) bool { return true }), true
	if r.folder == "" {
		r.sync = defaultSync(r.namespace, r.Path)
		return nil
	}
	components := r.files[path.Join(r.folder, componentsFile)]
	for _, m := range header.FindAllSubmatch(components, 2) {
		value := strings.TrimSpace(string(m[2]))
		if string(m[1]) == "Flux Version" {
			r.version = value
			continue
		}
		r.components = strings.Split(value, ",")
	}
	r.watchAll = !bytes.Contains(components, []byte("--watch-all-namespaces=false"))
	name := path.Join(r.folder, syncFile)
	var err error
	if r.sync, err = build.ReadManifests(bytes.NewReader(r.files[name])); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	for _, o := range r.sync {
		if o.GetNamespace() != "" {
			r.namespace = o.GetNamespace()
		}
	}
	return nil
}

// own returns what identifies the sources that are the repository.
func (r *Repository) own(comparable func(string) string) own {
	o := own{remotes: slices.Clone(r.Remotes)}
	for _, source := range r.sync {
		url, is, _ := unstructured.NestedString(source.Object, "spec", "url")
		if _, applies, _ := unstructured.NestedString(source.Object, "spec", "path"); !is || applies {
			continue
		}
		o.remotes = append(o.remotes, comparable(url))
		if r.folder != "" {
			o.ref, _, _ = unstructured.NestedMap(source.Object, "spec", "ref")
			o.ref = nonNil(o.ref)
		}
	}
	slices.Sort(o.remotes)
	o.remotes = slices.Compact(o.remotes)
	return o
}

// nonNil returns an empty map for nil: a source without spec.ref is not one at any revision.
func nonNil(ref map[string]any) map[string]any {
	if ref == nil {
		return map[string]any{}
	}
	return ref
}

// placeholder is the address of a repository without a remote.
const placeholder = "https://repository.invalid/rehearsed"

// defaultSync returns the source and the Kustomization that bootstrap creates for a folder.
func defaultSync(namespace, folder string) []*unstructured.Unstructured {
	metadata := func() map[string]any { return map[string]any{"name": "flux-system", "namespace": namespace} }
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": metadata(),
			"spec": map[string]any{"interval": "1m0s", "url": placeholder, "ref": map[string]any{"branch": "main"}},
		}},
		{Object: map[string]any{
			"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata(),
			"spec": map[string]any{
				"interval": "10m0s", "path": "./" + folder, "prune": true,
				"sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
			},
		}},
	}
}

// at returns the files with the installation of a version of Flux.
func (r *Repository) at(set *manifests.Set) (map[string][]byte, error) {
	files := make(map[string][]byte, len(r.files))
	for name, content := range r.files {
		files[name] = content
	}
	if r.folder == "" {
		return files, nil
	}
	text, err := set.YAML()
	files[path.Join(r.folder, componentsFile)] = text
	return files, err
}

// fileOf returns the file with the manifest of an object, or "" if there is none or more than one.
func (r *Repository) fileOf(ctx context.Context, kind, name string) string {
	found, err := build.Search(ctx, r.Tree, []string{kind, name}, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name
	})
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0].File
}
