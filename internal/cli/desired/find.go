package desired

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/oci"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/objref"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Wanted selects an object by kind and predicate. Flag is the flag that names
// its file.
type Wanted struct {
	Kind, Flag string
	Is         func(*unstructured.Unstructured) bool
}

func wantedKustomization() Wanted {
	return Wanted{"Kustomization", "--kustomization-file", build.IsKustomization}
}

// KustomizationFromFile reads the Kustomization from a file.
func KustomizationFromFile(ctx context.Context, a *app.App, file, namespace, name string) (*unstructured.Unstructured, error) {
	return ManifestFromFile(ctx, a, file, wantedKustomization(), namespace, name)
}

// ObjectFor returns the object to build: from the file of the command line,
// from the work tree with --dry-run, or from the cluster.
func ObjectFor(
	ctx context.Context, a *app.App, o *BuildOptions, wanted Wanted, work workspace.WorkTree, namespace, name string,
) (*unstructured.Unstructured, error) {
	switch {
	case o.File != "":
		return ManifestFromFile(ctx, a, o.File, wanted, namespace, name)
	case o.DryRun:
		folder := ""
		if o.Path != "" {
			var err error
			if folder, err = work.Inside(o.Path); err != nil {
				return nil, err
			}
		}
		return findManifest(ctx, wanted, work, namespace, name, folder)
	}
	return LiveObject(ctx, a, wanted.Kind, namespace, name)
}

// LiveObject reads an object of a Flux kind from the cluster.
func LiveObject(ctx context.Context, a *app.App, kind, namespace, name string) (*unstructured.Unstructured, error) {
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	k, known := controllers.FindKind(kind)
	if !known {
		return nil, fmt.Errorf("%s is not a Flux kind", kind)
	}
	t := objref.Target{Kind: k, Namespace: namespace, Name: name}
	if err := t.Read(ctx, client); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: t.Object}, nil
}

// LiveOrNil returns the live object, or nil if it does not exist.
func LiveOrNil(ctx context.Context, a *app.App, ref build.Reference) (*unstructured.Unstructured, error) {
	live, err := LiveObject(ctx, a, ref.Kind, ref.Namespace, ref.Name)
	var absent *objref.NotFoundError
	if errors.As(err, &absent) {
		return nil, nil
	}
	return live, err
}

// findSource returns the object of a source from the cluster, or from the work
// tree with --dry-run.
func findSource(ctx context.Context, a *app.App, o *BuildOptions, work workspace.WorkTree, source build.Reference) (*unstructured.Unstructured, error) {
	if !o.DryRun {
		found, err := LiveObject(ctx, a, source.Kind, source.Namespace, source.Name)
		var missing *objref.NotFoundError
		if errors.As(err, &missing) {
			return nil, build.ErrNotFound
		}
		return found, err
	}
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

// ManifestFromFile reads the wanted object from a file, which may have other
// objects.
func ManifestFromFile(ctx context.Context, a *app.App, file string, wanted Wanted, namespace, name string) (*unstructured.Unstructured, error) {
	text, err := oci.ReadInput(ctx, a, file)
	if err != nil {
		return nil, err
	}
	objects, err := build.ReadManifests(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var others []string
	for _, o := range objects {
		if !wanted.Is(o) {
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
		return nil, fmt.Errorf("no %s in %s", wanted.Kind, file)
	}
	return nil, hint.Errorf("found "+strings.Join(others, ", "), "no %s %q in namespace %q in %s", wanted.Kind, name, namespace, file)
}

// withPath returns the manifests with the given spec.path if there are any, else
// all of them: several clusters may have a Kustomization of the same name.
func withPath(found []build.Manifest, folder string) []build.Manifest {
	var same []build.Manifest
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
// are several, it returns the one whose spec.path is folder.
func findManifest(ctx context.Context, wanted Wanted, work workspace.WorkTree, namespace, name, folder string) (*unstructured.Unstructured, error) {
	remedy := "set its file with " + wanted.Flag
	if !work.Git {
		return nil, hint.Errorf(remedy, "cannot find %s %q: no cluster and no Git work tree", wanted.Kind, name)
	}
	found, err := build.Search(ctx, work.Tree(), []string{wanted.Kind, name}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == namespace || o.GetNamespace() == ""
		return wanted.Is(o) && o.GetName() == name && here
	})
	if err != nil {
		return nil, err
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
		return nil, hint.Errorf(remedy, "no file in %s has a %s %q in namespace %q", work.Root, wanted.Kind, name, namespace)
	case 1:
		return found[0].Unstructured, nil
	default:
		return nil, hint.Errorf(remedy, "several files have a %s %q: %s", wanted.Kind, name, strings.Join(files, ", "))
	}
}

// SecretKind returns the kind Secret, which is not in the catalog.
func SecretKind() controllers.Kind {
	return controllers.Kind{Version: "v1", Kind: "Secret", Resource: "secrets"}
}
