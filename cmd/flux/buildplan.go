package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// workTree is a folder on disk that holds what a source would.
type workTree struct {
	root string // absolute
	// git tells that it is a Git work tree, and not just the whole disk.
	git bool
}

// workTreeAround finds the Git work tree that a folder is in. Where there is
// none, any file of the disk may be used.
func workTreeAround(folder string) (workTree, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return workTree{}, fmt.Errorf("finding %s: %w", folder, err)
	}
	for at := absolute; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return workTree{at, true}, nil
		}
		if at == filepath.Dir(at) {
			return workTree{root: at}, nil
		}
	}
}

func (w workTree) tree() fs.FS { return os.DirFS(w.root) }

// inside is a folder on disk as a path in the work tree.
func (w workTree) inside(folder string) (string, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", folder, err)
	}
	relative, err := filepath.Rel(w.root, absolute)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", folder, err)
	}
	return filepath.ToSlash(relative), nil
}

// planBuild finds the Kustomization, the folder, and where its variables are.
func (a *app) planBuild(ctx context.Context, cmd *cobra.Command, o *buildOptions, name string) (*buildPlan, error) {
	namespace, err := a.namespace(cmd)
	if err != nil {
		return nil, err
	}
	if err := checkFolder(o.path); err != nil {
		return nil, err
	}
	around := o.path
	if around == "" {
		around = "."
	}
	work, err := workTreeAround(around)
	if err != nil {
		return nil, err
	}
	ks, err := a.kustomizationFor(ctx, o, work, namespace, name)
	if err != nil {
		return nil, err
	}
	vars, err := o.vars()
	if err != nil {
		return nil, err
	}
	plan := &buildPlan{ks: ks, tree: work.tree(), options: build.Options{
		Vars: vars, Strict: o.strict, Ignore: o.ignore, Filter: true, Lookup: a.lookupFor(o, work),
	}}
	if _, substitutes, _ := unstructured.NestedMap(ks.Object, "spec", "postBuild"); len(vars) > 0 && !substitutes {
		a.ui.Warning("Kustomization %q has no spec.postBuild: no variables are substituted in its own objects", name)
	}
	if o.path != "" {
		plan.options.Path, err = work.inside(o.path)
	} else if !work.git {
		err = hinted("name the folder with --path", "there is no Git work tree around the current folder to find spec.path in")
	}
	if err == nil && o.recursive {
		plan.sources, err = o.localSources(work, ks)
	}
	return plan, err
}

// checkFolder tells early that a folder is not there.
func checkFolder(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &build.PathError{Path: path, Problem: "there is no such folder"}
	case err != nil:
		return fmt.Errorf("reading %s: %w", path, err)
	case !info.IsDir():
		return &build.PathError{Path: path, Problem: "it is not a folder"}
	}
	return nil
}

// kustomizationFor takes the Kustomization from the file, the cluster, or,
// where no cluster may be asked, the work tree.
func (a *app) kustomizationFor(ctx context.Context, o *buildOptions, work workTree, namespace, name string) (*unstructured.Unstructured, error) {
	k, _ := controllers.FindKind("Kustomization")
	switch {
	case o.file != "":
		return a.kustomizationIn(o.file, namespace, name)
	case o.dryRun:
		return findKustomization(ctx, work, namespace, name)
	}
	client, err := a.cluster()
	if err != nil {
		return nil, err
	}
	t := target{kind: k, namespace: namespace, name: name}
	if err := a.read(ctx, client, &t); err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: t.object}, nil
}

// kustomizationIn reads a Kustomization from a file, which may hold others.
func (a *app) kustomizationIn(file, namespace, name string) (*unstructured.Unstructured, error) {
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
		if !build.IsKustomization(o) {
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
		return nil, fmt.Errorf("there is no Kustomization in %s", file)
	}
	return nil, hinted("it has "+strings.Join(others, ", "), "there is no Kustomization %q of namespace %q in %s", name, namespace, file)
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

// findKustomization looks for a Kustomization among the files of the work tree.
func findKustomization(ctx context.Context, work workTree, namespace, name string) (*unstructured.Unstructured, error) {
	const way = "name the file that it is in with --kustomization-file"
	if !work.git {
		return nil, hinted(way, "without a cluster and outside of a Git work tree, there is nowhere to find Kustomization %q", name)
	}
	found, err := build.Search(ctx, work.tree(), []string{"kustomize.toolkit.fluxcd.io", name}, func(o *unstructured.Unstructured) bool {
		here := o.GetNamespace() == namespace || o.GetNamespace() == ""
		return build.IsKustomization(o) && o.GetName() == name && here
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
		return nil, hinted(way, "no file below %s has a Kustomization %q of namespace %q", work.root, name, namespace)
	case 1:
		return found[0].Unstructured, nil
	default:
		return nil, hinted(way, "several files have a Kustomization %q: %s", name, strings.Join(files, ", "))
	}
}

// lookupFor says where ConfigMaps and Secrets with variables are found: on the
// cluster, or, where none may be asked, in the work tree. There, one that is
// missing is told and left out, since it may well be only on the cluster.
func (a *app) lookupFor(o *buildOptions, work workTree) build.Lookup {
	if !o.dryRun {
		return build.LookupFunc(a.clusterData)
	}
	var repository build.Lookup = build.LookupFunc(func(context.Context, build.Reference) (map[string][]byte, error) {
		return nil, build.ErrNotFound
	})
	if work.git {
		repository = build.InRepository(work.tree())
	}
	warn := a.warnOnce()
	return build.LookupFunc(func(ctx context.Context, object build.Reference) (map[string][]byte, error) {
		data, err := repository.Data(ctx, object)
		if err == nil || ctx.Err() != nil {
			return data, ctx.Err()
		}
		warn("the variables of %s are left out: %s; give them with --vars-file", object, err)
		return nil, nil
	})
}

// clusterData reads a ConfigMap or a Secret from the cluster.
func (a *app) clusterData(ctx context.Context, object build.Reference) (map[string][]byte, error) {
	client, err := a.cluster()
	if err != nil {
		return nil, err
	}
	kind := secretKind()
	if object.Kind == "ConfigMap" {
		kind = controllers.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps"}
	}
	found, err := client.Get(ctx, kube.Of(kind), object.Namespace, object.Name)
	if apierrors.IsNotFound(err) {
		return nil, build.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return build.DataOf(&unstructured.Unstructured{Object: found})
}

// localSources maps the sources of Kustomizations to folders: those named, and
// the work tree for the source of the Kustomization itself.
func (o *buildOptions) localSources(work workTree, ks *unstructured.Unstructured) (build.Sources, error) {
	trees := map[build.Reference]fs.FS{}
	root := work
	if !work.git {
		root.root = strippedPath(o.path, ks)
	}
	trees[build.SourceOf(ks)] = root.tree()
	for source, folder := range o.sources {
		parts := strings.Split(source, "/")
		if len(parts) != 3 {
			return nil, hinted("write it as Kind/namespace/name=path", "%q does not name a source", source)
		}
		if err := checkFolder(folder); err != nil {
			return nil, err
		}
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", folder, err)
		}
		trees[build.Reference{Kind: parts[0], Namespace: parts[1], Name: parts[2]}] = os.DirFS(absolute)
	}
	return func(_ context.Context, source build.Reference) (fs.FS, error) {
		if tree, ok := trees[source]; ok {
			return tree, nil
		}
		return nil, build.ErrNotFound
	}, nil
}

// strippedPath is the root of a source outside of Git: the folder that is
// built without spec.path, where it ends in that, else the current folder.
func strippedPath(folder string, ks *unstructured.Unstructured) string {
	own, _, _ := unstructured.NestedString(ks.Object, "spec", "path")
	absolute, err := filepath.Abs(folder)
	if root, ok := strings.CutSuffix(absolute, filepath.Clean(string(filepath.Separator)+own)); err == nil && ok && root != "" {
		return root
	}
	return "."
}

// vars are the variables of the command line: --set above --vars-file.
func (o *buildOptions) vars() (map[string]string, error) {
	vars := map[string]string{}
	if o.varsFile != "" {
		text, err := os.ReadFile(o.varsFile)
		if err != nil {
			return nil, fmt.Errorf("reading the variables: %w", err)
		}
		if vars, err = readVars(text); err != nil {
			return nil, fmt.Errorf("reading %s: %w", o.varsFile, err)
		}
	}
	for name, value := range o.set {
		vars[name] = value
	}
	return vars, nil
}

// readVars reads variables from a ConfigMap, a Secret, a map or lines.
func readVars(text []byte) (map[string]string, error) {
	var object map[string]any
	if yaml.Unmarshal(text, &object) != nil {
		return readLines(string(text))
	}
	for name := range object {
		if strings.Contains(name, "=") { // "URL=http: //x" is both
			return readLines(string(text))
		}
	}
	vars := map[string]string{}
	if kind := object["kind"]; kind == "ConfigMap" || kind == "Secret" {
		data, err := build.DataOf(&unstructured.Unstructured{Object: object})
		for name, value := range data {
			vars[name] = string(value)
		}
		return vars, err
	}
	for name, value := range object {
		switch value.(type) {
		case map[string]any, []any:
			return nil, fmt.Errorf("the value of %q is not text", name)
		}
		vars[name] = fmt.Sprint(value)
	}
	return vars, nil
}

// readLines reads NAME=value lines; empty ones and those that begin with # say nothing.
func readLines(text string) (map[string]string, error) {
	vars := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("line %d is not NAME=value", i+1)
		}
		vars[strings.TrimSpace(name)] = value
	}
	return vars, nil
}
