package desired

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/oci"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Wanted is what is looked for, and the flag that names its file.
type Wanted struct {
	Kind, Flag string
	Is         func(*unstructured.Unstructured) bool
}

func wantedKustomization() Wanted {
	return Wanted{"Kustomization", "--kustomization-file", build.IsKustomization}
}

// KustomizationIn reads a Kustomization from a file.
func KustomizationIn(a *app.App, file, namespace, name string) (*unstructured.Unstructured, error) {
	return ManifestIn(a, file, wantedKustomization(), namespace, name)
}

// ObjectFor takes the object to build from the file, the cluster, or, where no
// cluster may be asked, the work tree.
func ObjectFor(
	ctx context.Context, a *app.App, o *BuildOptions, wanted Wanted, work WorkTree, namespace, name string,
) (*unstructured.Unstructured, error) {
	switch {
	case o.File != "":
		return ManifestIn(a, o.File, wanted, namespace, name)
	case o.DryRun:
		return findManifest(ctx, wanted, work, namespace, name)
	}
	return LiveObject(ctx, a, wanted.Kind, namespace, name)
}

// LiveObject reads an object of a kind of Flux from the cluster.
func LiveObject(ctx context.Context, a *app.App, kind, namespace, name string) (*unstructured.Unstructured, error) {
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	k, known := controllers.FindKind(kind)
	if !known {
		return nil, fmt.Errorf("%s is not a kind of Flux", kind)
	}
	t := objref.Target{Kind: k, Namespace: namespace, Name: name}
	if err := t.Read(ctx, client); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: t.Object}, nil
}

// LiveIfAny is an object of the cluster, nil where there is none.
func LiveIfAny(ctx context.Context, a *app.App, ref build.Reference) (*unstructured.Unstructured, error) {
	live, err := LiveObject(ctx, a, ref.Kind, ref.Namespace, ref.Name)
	var absent *objref.NotFoundError
	if errors.As(err, &absent) {
		return nil, nil
	}
	return live, err
}

// findSource finds the object of a source, on the cluster or in the work tree.
func findSource(ctx context.Context, a *app.App, o *BuildOptions, work WorkTree, source build.Reference) (*unstructured.Unstructured, error) {
	if !o.DryRun {
		found, err := LiveObject(ctx, a, source.Kind, source.Namespace, source.Name)
		var missing *objref.NotFoundError
		if errors.As(err, &missing) {
			return nil, build.ErrNotFound
		}
		return found, err
	}
	if !work.git {
		return nil, build.ErrNotFound
	}
	found, err := build.Search(ctx, work.Tree(), []string{source.Kind, source.Name}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == source.Namespace || o.GetNamespace() == ""
		return o.GetKind() == source.Kind && o.GetName() == source.Name && here
	})
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

// ManifestIn reads an object from a file, which may hold others.
func ManifestIn(a *app.App, file string, wanted Wanted, namespace, name string) (*unstructured.Unstructured, error) {
	text, err := oci.ReadInput(a, file)
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
		return nil, fmt.Errorf("there is no %s in %s", wanted.Kind, file)
	}
	return nil, clierr.WithHint("it has "+strings.Join(others, ", "), "there is no %s %q of namespace %q in %s", wanted.Kind, name, namespace, file)
}

// findManifest looks for an object among the files of the work tree.
func findManifest(ctx context.Context, wanted Wanted, work WorkTree, namespace, name string) (*unstructured.Unstructured, error) {
	way := "name the file that it is in with " + wanted.Flag
	if !work.git {
		return nil, clierr.WithHint(way, "without a cluster and outside of a Git work tree, there is nowhere to find %s %q", wanted.Kind, name)
	}
	found, err := build.Search(ctx, work.Tree(), []string{wanted.Kind, name}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == namespace || o.GetNamespace() == ""
		return wanted.Is(o) && o.GetName() == name && here
	})
	if err != nil {
		return nil, err
	}
	var files []string
	for _, m := range found {
		if m.GetNamespace() == "" {
			m.SetNamespace(namespace)
		}
		files = append(files, m.File)
	}
	switch len(found) {
	case 0:
		return nil, clierr.WithHint(way, "no file below %s has a %s %q of namespace %q", work.root, wanted.Kind, name, namespace)
	case 1:
		return found[0].Unstructured, nil
	default:
		return nil, clierr.WithHint(way, "several files have a %s %q: %s", wanted.Kind, name, strings.Join(files, ", "))
	}
}

// SecretKind lets Secrets be read as the kinds of the catalogue are.
func SecretKind() controllers.Kind {
	return controllers.Kind{Version: "v1", Kind: "Secret", Resource: "secrets"}
}
