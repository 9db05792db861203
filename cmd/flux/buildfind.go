package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// manifestWanted is what is looked for, and the flag that names its file.
type manifestWanted struct {
	kind, flag string
	is         func(*unstructured.Unstructured) bool
}

func wantedKustomization() manifestWanted {
	return manifestWanted{"Kustomization", "--kustomization-file", build.IsKustomization}
}

// kustomizationIn reads a Kustomization from a file.
func (a *app) kustomizationIn(file, namespace, name string) (*unstructured.Unstructured, error) {
	return a.manifestIn(file, wantedKustomization(), namespace, name)
}

// objectFor takes the object to build from the file, the cluster, or, where no
// cluster may be asked, the work tree.
func (a *app) objectFor(
	ctx context.Context, o *buildOptions, wanted manifestWanted, work workTree, namespace, name string,
) (*unstructured.Unstructured, error) {
	switch {
	case o.file != "":
		return a.manifestIn(o.file, wanted, namespace, name)
	case o.dryRun:
		return findManifest(ctx, wanted, work, namespace, name)
	}
	return a.liveObject(ctx, wanted.kind, namespace, name)
}

// liveObject reads an object of a kind of Flux from the cluster.
func (a *app) liveObject(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	client, err := a.cluster()
	if err != nil {
		return nil, err
	}
	k, known := controllers.FindKind(kind)
	if !known {
		return nil, fmt.Errorf("%s is not a kind of Flux", kind)
	}
	t := target{kind: k, namespace: namespace, name: name}
	if err := t.read(ctx, client); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: t.object}, nil
}

// liveIfAny is an object of the cluster, nil where there is none.
func (a *app) liveIfAny(ctx context.Context, ref build.Reference) (*unstructured.Unstructured, error) {
	live, err := a.liveObject(ctx, ref.Kind, ref.Namespace, ref.Name)
	var absent *notFoundError
	if errors.As(err, &absent) {
		return nil, nil
	}
	return live, err
}

// findSource finds the object of a source, on the cluster or in the work tree.
func (a *app) findSource(ctx context.Context, o *buildOptions, work workTree, source build.Reference) (*unstructured.Unstructured, error) {
	if !o.dryRun {
		found, err := a.liveObject(ctx, source.Kind, source.Namespace, source.Name)
		var missing *notFoundError
		if errors.As(err, &missing) {
			return nil, build.ErrNotFound
		}
		return found, err
	}
	if !work.git {
		return nil, build.ErrNotFound
	}
	found, err := build.Search(ctx, work.tree(), []string{source.Kind, source.Name}, func(o *unstructured.Unstructured) bool {
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

// manifestIn reads an object from a file, which may hold others.
func (a *app) manifestIn(file string, wanted manifestWanted, namespace, name string) (*unstructured.Unstructured, error) {
	text, err := a.readInput(file)
	if err != nil {
		return nil, err
	}
	objects, err := build.ReadManifests(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var others []string
	for _, o := range objects {
		if !wanted.is(o) {
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
		return nil, fmt.Errorf("there is no %s in %s", wanted.kind, file)
	}
	return nil, hinted("it has "+strings.Join(others, ", "), "there is no %s %q of namespace %q in %s", wanted.kind, name, namespace, file)
}

// readInput reads a file, or standard input for "-".
func (a *app) readInput(file string) ([]byte, error) {
	if file == "-" {
		text, err := io.ReadAll(a.in)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return text, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	return text, nil
}

// findManifest looks for an object among the files of the work tree.
func findManifest(ctx context.Context, wanted manifestWanted, work workTree, namespace, name string) (*unstructured.Unstructured, error) {
	way := "name the file that it is in with " + wanted.flag
	if !work.git {
		return nil, hinted(way, "without a cluster and outside of a Git work tree, there is nowhere to find %s %q", wanted.kind, name)
	}
	found, err := build.Search(ctx, work.tree(), []string{wanted.kind, name}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == namespace || o.GetNamespace() == ""
		return wanted.is(o) && o.GetName() == name && here
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
		return nil, hinted(way, "no file below %s has a %s %q of namespace %q", work.root, wanted.kind, name, namespace)
	case 1:
		return found[0].Unstructured, nil
	default:
		return nil, hinted(way, "several files have a %s %q: %s", wanted.kind, name, strings.Join(files, ", "))
	}
}
