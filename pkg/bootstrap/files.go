package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/hint"
)

// The files that bootstrap writes.
const (
	componentsFile    = "gotk-components.yaml"
	syncFile          = "gotk-sync.yaml"
	kustomizationFile = "kustomization.yaml"
)

// syncInterval is the interval of the Kustomization, which corrects drift
// between commits.
const syncInterval = 10 * time.Minute

// files holds the manifests in the cluster directory, and the objects that are
// built from it. commits writes the manifests.
type files struct {
	plan       *Plan
	repository *repository
	// components is gotk-components.yaml.
	components []byte
	// built is the result of build, nil before it and after a change of the clone.
	built []*unstructured.Unstructured
}

// render renders gotk-components.yaml.
func (f *files) render(context.Context) (err error) {
	f.components, err = f.plan.Components.YAML()
	return err
}

// check builds the directory so that an invalid kustomization is reported before anything is
// pushed.
func (f *files) check(context.Context) error {
	parts := strings.Split(f.plan.folder(), "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		if _, err := f.repository.clone.ReadFile(at); err == nil {
			return hint.Errorf("remove the file, or set another --path", "%q in the repository is a file, not a directory", at)
		}
	}
	_, err := f.build()
	return err
}

// build returns the objects of the directory with the user's patches applied, so
// that bootstrap installs the objects that kustomize-controller will apply.
func (f *files) build() ([]*unstructured.Unstructured, error) {
	if f.built != nil {
		return slices.Clone(f.built), nil
	}
	sync, err := f.syncManifests()
	if err != nil {
		return nil, err
	}
	name, text, err := f.kustomization(f.repository.clone)
	if err != nil {
		return nil, err
	}
	if listsOnlyFluxFiles(text) {
		// A kustomize build of only the two files returns the same objects, and
		// takes about a second to parse the CRDs.
		f.built = append(f.plan.Components.Unstructured(), f.syncObjects()...)
		return slices.Clone(f.built), nil
	}
	changed, err := f.repository.clone.Files()
	if err == nil {
		changed, err = changed.With(map[string][]byte{f.in(componentsFile): f.components, f.in(syncFile): sync, name: text})
	}
	if err == nil {
		f.built, err = buildDirectory(changed, f.plan.folder())
	}
	if err != nil {
		return nil, hint.Errorf("fix it in the repository: flux only adds resources to it and keeps your changes", "building %s from the repository: %w", name, err)
	}
	return slices.Clone(f.built), nil
}

// in returns the path of a file in the directory.
func (f *files) in(name string) string { return path.Join(f.plan.folder(), name) }

// listsOnlyFluxFiles reports whether a kustomization only lists the two files as resources.
func listsOnlyFluxFiles(text []byte) bool {
	var k map[string]any
	if budget.Unmarshal("", text, &k) != nil {
		return false
	}
	resources, _ := k["resources"].([]any)
	delete(k, "apiVersion")
	delete(k, "kind")
	delete(k, "resources")
	return len(k) == 0 && len(resources) == 2 && slices.Contains(resources, componentsFile) && slices.Contains(resources, syncFile)
}

// pending reports whether a clone's branch does not have all manifests of this run.
func (f *files) pending(clone *remote.Branch) (bool, error) {
	if !clone.BranchExists() {
		return true, nil
	}
	wanted, err := f.syncFiles(clone)
	if err != nil {
		return false, err
	}
	wanted[f.in(componentsFile)] = f.components
	for name, content := range wanted {
		current, err := clone.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err != nil || !bytes.Equal(current, content) {
			return true, nil
		}
	}
	return false, nil
}

// syncFiles returns the files of the second commit: the sync manifests, and the
// kustomization of the repository with the two files as resources.
func (f *files) syncFiles(clone *remote.Branch) (map[string][]byte, error) {
	sync, err := f.syncManifests()
	if err != nil {
		return nil, err
	}
	name, kustomization, err := f.kustomization(clone)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{f.in(syncFile): sync, name: kustomization}, nil
}

// kustomization returns the path of the directory's kustomization and its content
// with the two files as resources.
func (f *files) kustomization(clone *remote.Branch) (string, []byte, error) {
	for _, name := range []string{kustomizationFile, "kustomization.yml", "Kustomization"} {
		file := f.in(name)
		data, err := clone.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		edited, err := addResources(data, componentsFile, syncFile)
		if err != nil {
			return "", nil, fmt.Errorf("adding the manifests to %s: %w", file, err)
		}
		return file, edited, nil
	}
	return f.in(kustomizationFile), newKustomization(), nil
}

// syncObjects returns the GitRepository and the Kustomization that sync the
// cluster from the repository.
func (f *files) syncObjects() []*unstructured.Unstructured {
	namespace := f.plan.namespace()
	spec := map[string]any{
		"interval":  f.plan.Sync.Interval.String(),
		"ref":       map[string]any{"branch": f.plan.Branch},
		"secretRef": map[string]any{"name": f.plan.Sync.SecretName},
		"url":       f.repository.SyncURL,
	}
	if f.plan.Sync.RecurseSubmodules {
		spec["recurseSubmodules"] = true
	}
	if folders := f.plan.Sync.SparseCheckout; len(folders) > 0 {
		list := make([]any, len(folders))
		for i, folder := range folders {
			list[i] = folder
		}
		spec["sparseCheckout"] = list
	}
	return []*unstructured.Unstructured{
		syncObject("GitRepository", namespace, spec),
		syncObject("Kustomization", namespace, map[string]any{
			"interval":  syncInterval.String(),
			"path":      "./" + f.plan.Path,
			"prune":     true,
			"sourceRef": map[string]any{"kind": "GitRepository", "name": namespace},
		}),
	}
}

func syncObject(kindName, namespace string, spec map[string]any) *unstructured.Unstructured {
	k := kind(kindName)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k.APIVersion(), "kind": k.Kind,
		"metadata": map[string]any{"name": namespace, "namespace": namespace},
		"spec":     spec,
	}}
}

// syncManifests returns gotk-sync.yaml.
func (f *files) syncManifests() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# This manifest was generated by flux. DO NOT EDIT.\n")
	for _, o := range f.syncObjects() {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", o.GetKind(), err)
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return out.Bytes(), nil
}

// isSync reports whether an object is one of syncObjects.
func (f *files) isSync(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(f.syncObjects(), func(s *unstructured.Unstructured) bool {
		return s.GroupVersionKind().GroupKind() == o.GroupVersionKind().GroupKind() &&
			s.GetName() == o.GetName() && s.GetNamespace() == o.GetNamespace()
	})
}
