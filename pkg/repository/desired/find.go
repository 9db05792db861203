package desired

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// wanted selects an object by kind and predicate. flag is the flag that sets its file.
type wanted struct {
	kind, flag string
	is         func(*unstructured.Unstructured) bool
}

func wantedKustomization() wanted {
	return wanted{controllers.Kustomization, "--kustomization-file", build.IsKustomization}
}

func wantedHelmRelease() wanted {
	return wanted{controllers.HelmRelease, "--helmrelease-file", build.IsHelmRelease}
}

// KustomizationFromFile reads the Kustomization from Options.File.
func (b *Builder) KustomizationFromFile(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return b.manifestFromFile(ctx, wantedKustomization(), namespace, name)
}

// HelmReleaseFromFile reads the HelmRelease from Options.File.
func (b *Builder) HelmReleaseFromFile(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return b.manifestFromFile(ctx, wantedHelmRelease(), namespace, name)
}

// objectFor returns the object to build: from Options.File, from the work tree with
// Options.DryRun, or from the cluster.
func (b *Builder) objectFor(ctx context.Context, want wanted, work git.Workspace, namespace, name string) (*unstructured.Unstructured, error) {
	switch {
	case b.File != "":
		return b.manifestFromFile(ctx, want, namespace, name)
	case b.DryRun:
		folder := ""
		if b.Path != "" {
			var err error
			if folder, err = work.Inside(b.Path); err != nil {
				return nil, err
			}
		}
		return findManifest(ctx, b.Kustomizer, want, work, namespace, name, folder)
	}
	return b.LiveObject(ctx, want.kind, namespace, name)
}

// Object finds an object of another kind in the same way as [Builder.RenderRelease] finds a HelmRelease. flag sets its
// file.
func (b *Builder) Object(
	ctx context.Context, kind, flag string, is func(*unstructured.Unstructured) bool, work git.Workspace, namespace, name string,
) (*unstructured.Unstructured, error) {
	return b.objectFor(ctx, wanted{kind, flag, is}, work, namespace, name)
}

// findSource returns the object of a source from the cluster, or from the work
// tree with Options.DryRun.
func (b *Builder) findSource(ctx context.Context, work git.Workspace, source controllers.ID) (*unstructured.Unstructured, error) {
	if b.DryRun {
		return sourceInWorkTree(ctx, work, source)
	}
	found, err := b.LiveObject(ctx, source.Kind, source.Namespace, source.Name)
	var missing *objref.NotFoundError
	if errors.As(err, &missing) {
		return nil, build.ErrNotFound
	}
	return found, err
}

// sourceInWorkTree returns the object of a source from the work tree.
func sourceInWorkTree(ctx context.Context, work git.Workspace, source controllers.ID) (*unstructured.Unstructured, error) {
	found, err := manifestsOf(ctx, work, source)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, build.ErrNotFound
	}
	if found[0].GetNamespace() == "" {
		found[0].SetNamespace(source.Namespace)
	}
	return found[0].Unstructured, nil
}

// manifestFromFile reads the wanted object from Options.File, which may contain other objects.
func (b *Builder) manifestFromFile(ctx context.Context, want wanted, namespace, name string) (*unstructured.Unstructured, error) {
	file := b.File
	text, err := b.ReadFile(ctx, file)
	if err != nil {
		return nil, err
	}
	objects, err := sourcetree.ReadManifests(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var others []string
	for _, o := range objects {
		if !want.is(o) {
			continue
		}
		if o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		if o.GetName() == name && o.GetNamespace() == namespace {
			return o, nil
		}
		others = append(others, o.GetNamespace()+"/"+o.GetName())
	}
	if len(others) == 0 {
		return nil, fmt.Errorf("no %s in %s", want.kind, file)
	}
	return nil, hint.Errorf("found "+strings.Join(others, ", "), "no %s %q in namespace %q in %s", want.kind, name, namespace, file)
}

// withPath returns the manifests with the given spec.path if there are any, else
// all of them: several clusters may have a Kustomization of the same name.
func withPath(found []sourcetree.Manifest, folder string) []sourcetree.Manifest {
	var same []sourcetree.Manifest
	for _, m := range found {
		if folder != "" && path.Clean("/"+Text(m.Unstructured, "spec", "path")) == path.Clean("/"+folder) {
			same = append(same, m)
		}
	}
	if len(same) == 0 {
		return found
	}
	return same
}

// findManifest searches the manifests of the work tree for an object. If there
// are several, it returns the one whose spec.path is directory. A FluxInstance creates the Kustomization of its cluster.
func findManifest(
	ctx context.Context, kustomizer build.Kustomizer, want wanted, work git.Workspace, namespace, name, folder string,
) (*unstructured.Unstructured, error) {
	remedy := "set its file with " + want.flag
	if !work.Git {
		return nil, hint.Errorf(remedy, "cannot find %s %q: no cluster and no Git work tree", want.kind, name)
	}
	found, err := sourcetree.Search(ctx, work.Tree(), []string{want.kind, name}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == namespace || o.GetNamespace() == ""
		return want.is(o) && o.GetName() == name && here
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && want.kind == controllers.Kustomization {
		if found, err = repository.Synced(ctx, kustomizer, work.Tree(), namespace, name); err != nil {
			return nil, err
		}
	}
	found = withPath(found, folder)
	var files []string
	for _, m := range found {
		if m.GetNamespace() == "" {
			m.SetNamespace(namespace)
		}
		files = append(files, m.File)
	}
	switch len(found) {
	case 0:
		return nil, hint.Errorf(remedy, "no file in %s contains %s %q in namespace %q", work.Root, controllers.Indefinite(want.kind), name, namespace)
	case 1:
		return found[0].Unstructured, nil
	default:
		if want.kind == controllers.Kustomization {
			remedy += ", or its directory with --path"
		}
		return nil, hint.Errorf(remedy, "several files contain %s %q: %s", controllers.Indefinite(want.kind), name, strings.Join(files, ", "))
	}
}
