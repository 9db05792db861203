package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

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
	ks, err := a.objectFor(ctx, o, wantedKustomization(), work, namespace, name)
	if err != nil {
		return nil, err
	}
	work = work.forSource(o.path, ks)
	vars, secretVars, err := o.vars()
	if err != nil {
		return nil, err
	}
	kustomizer, err := a.kustomizer(o.remote)
	if err != nil {
		return nil, err
	}
	plan := &buildPlan{ks: ks, work: work, tree: work.tree(), options: build.Options{
		Vars: vars, SecretVars: secretVars, Strict: o.strict, Ignore: o.ignore, Filter: true, Lookup: a.lookupFor(o, work),
		Missing: a.missingFor(o, "variables", "--vars-file"), Kustomizer: kustomizer,
	}}
	if _, substitutes, _ := unstructured.NestedMap(ks.Object, "spec", "postBuild"); len(vars) > 0 && !substitutes {
		a.ui.Warning("Kustomization %q has no spec.postBuild: no variables are substituted in its own objects", name)
	}
	fetcher := &sourceFetcher{app: a, o: o, work: work, say: a.ui.Action}
	switch {
	case o.path != "":
		plan.options.Path, err = work.inside(o.path)
	case !work.git && !o.dryRun && build.SourceOf(ks).Name != "":
		plan.options.Filter = false // what is left out is not in it
		if plan.tree, err = fetcher.fetch(ctx, build.SourceOf(ks)); err != nil {
			err = hinted("name the folder with --path, or stand in a clone of its repository", "%w", err)
		}
	case !work.git:
		err = hinted("name the folder with --path", "there is no Git work tree around the current folder to find spec.path in")
	}
	if err == nil && o.recursive {
		plan.sources, err = plan.children(o, fetcher)
	}
	return plan, err
}

// children are the trees that Kustomizations among the objects are built from.
func (p *buildPlan) children(o *buildOptions, fetcher *sourceFetcher) (build.Sources, error) {
	local, err := fetcher.treesOf(o, p.work, p.ks)
	if err != nil {
		return nil, err
	}
	beyond := fetcher.beyond(local)
	if o.path != "" || p.work.git {
		return beyond, nil
	}
	return func(ctx context.Context, source build.Reference) (fs.FS, error) {
		if source == build.SourceOf(p.ks) {
			return p.tree, nil
		}
		return beyond(ctx, source)
	}, nil
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

// lookupFor says where ConfigMaps and Secrets are found: on the cluster, or,
// where none may be asked, in the work tree.
func (a *app) lookupFor(o *buildOptions, work workTree) build.Lookup {
	switch {
	case !o.dryRun:
		return build.LookupFunc(a.clusterData)
	case work.git:
		return build.InRepository(work.tree())
	}
	return build.FromObjects(nil)
}

// missingFor lets a build without a cluster go on without what may well be
// only there, and says so.
func (a *app) missingFor(o *buildOptions, what, flag string) func(build.Reference, error) bool {
	if !o.dryRun {
		return nil
	}
	warn := a.warnOnce()
	return func(object build.Reference, err error) bool {
		warn("the %s of %s are left out: %s; give them with %s", what, object, err, flag)
		return true
	}
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
