// Package desired finds and builds the desired state of Kustomizations and
// HelmReleases for the build and diff commands.
package desired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/shell"
	"github.com/fluxkit/flux/internal/workspace"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
)

// NewPlan locates the Kustomization, its directory and its variables.
func NewPlan(ctx context.Context, a *app.App, cmd *cobra.Command, o *BuildOptions, name string) (*Plan, error) {
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return nil, err
	}
	if err := CheckFolder(o.Path); err != nil {
		return nil, err
	}
	around := o.Path
	if around == "" {
		around = "."
	}
	work, err := workspace.Around(around)
	if err != nil {
		return nil, err
	}
	ks, err := ObjectFor(ctx, a, o, wantedKustomization(), work, namespace, name)
	if err != nil {
		return nil, err
	}
	work = work.ForSource(o.Path, ks)
	vars, secretVars, err := o.Vars()
	if err != nil {
		return nil, err
	}
	kustomizer, err := a.Kustomizer(o.Remote)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Ks: ks, Work: work, Options: build.Options{
		Vars: vars, SecretVars: secretVars, Strict: o.Strict, Ignore: o.Ignore, Lookup: lookupFor(a, o, work),
		Missing: missingFor(a, o, "variables", "--vars-file"), Kustomizer: kustomizer,
	}}
	if _, substitutes, _ := unstructured.NestedMap(ks.Object, "spec", "postBuild"); len(vars) > 0 && !substitutes {
		a.UI.Warning("Kustomization %q has no spec.postBuild: no variables are substituted in its own objects", name)
	}
	fetcher := &Fetcher{App: a, O: o, Work: work, Say: a.UI.Action}
	switch {
	case o.Path != "":
		plan.Options.Path, err = work.Inside(o.Path)
	case !work.Git && !o.DryRun && build.SourceOf(ks).Name != "":
		if plan.Tree, err = fetcher.fetch(ctx, build.SourceOf(ks)); err != nil {
			err = hint.Errorf("set --path, or run the command in a clone of the repository", "%w", err)
		}
	case !work.Git:
		err = hint.Errorf("set the directory with --path", "the current directory is not in a Git work tree: cannot resolve spec.path")
	}
	if err == nil && plan.Tree == nil {
		plan.Tree, plan.Options.Filter, err = o.Artifact(ctx, a, work, build.SourceOf(ks))
	}
	if err == nil && o.Recursive {
		plan.Sources, err = plan.children(o, fetcher)
	}
	return plan, err
}

// children returns the sources that the Kustomizations in the build are built
// from.
func (p *Plan) children(o *BuildOptions, fetcher *Fetcher) (build.Sources, error) {
	local, err := SourcesWithRemotes(fetcher.App, o, p.Work, p.Ks)
	if err != nil {
		return nil, err
	}
	withFetched := fetcher.WithFetched(local)
	if o.Path != "" || p.Work.Git {
		return withFetched, nil
	}
	return func(ctx context.Context, source build.Reference) (fs.FS, error) {
		if source == build.SourceOf(p.Ks) {
			return p.Tree, nil
		}
		return withFetched(ctx, source)
	}, nil
}

// CheckFolder returns an error if path does not exist or is not a directory.
func CheckFolder(path string) error {
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

// lookupFor returns the lookup of ConfigMaps and Secrets: the cluster, or the
// work tree with --dry-run.
func lookupFor(a *app.App, o *BuildOptions, work workspace.WorkTree) build.Lookup {
	switch {
	case !o.DryRun:
		return build.LookupFunc(func(ctx context.Context, object build.Reference) (map[string][]byte, error) {
			return ClusterData(ctx, a, object)
		})
	case work.Git:
		return build.InRepository(work.Tree())
	}
	return build.FromObjects(nil)
}

// missingFor returns a handler that lets a --dry-run build continue with a
// warning, because ConfigMaps and Secrets may exist only on the cluster.
func missingFor(a *app.App, o *BuildOptions, what, flag string) func(build.Reference, error) bool {
	if !o.DryRun {
		return nil
	}
	warn := warnOnce(a)
	return func(object build.Reference, err error) bool {
		warn("the %s of %s are left out: %s; give them with %s", what, object, err, flag)
		return true
	}
}

// ClusterData reads a ConfigMap or a Secret from the cluster.
func ClusterData(ctx context.Context, a *app.App, object build.Reference) (map[string][]byte, error) {
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	kind := SecretKind()
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

// Plan has the inputs of a Kustomization build.
type Plan struct {
	Ks      *unstructured.Unstructured
	Tree    fs.FS
	Options build.Options
	// Sources is nil unless child Kustomizations are built.
	Sources build.Sources
	Work    workspace.WorkTree
}

// Run builds the Kustomization, and its children if Sources is set.
func (p *Plan) Run(ctx context.Context) (*build.Result, error) {
	p.Options.Generate = generator.Generate
	if p.Sources == nil {
		return build.Kustomization(ctx, p.Tree, p.Ks, p.Options)
	}
	return build.Recursive(ctx, p.Tree, p.Ks, p.Options, p.Sources)
}

// ExplainBuild adds a remedy to a build error.
func ExplainBuild(err error) error {
	var unset *build.UnsetError
	var vars *build.VariablesError
	var remote *build.RemoteError
	switch {
	case errors.As(err, &remote) && remote.Host != "":
		return hint.Errorf(fmt.Sprintf("if you trust it, allow its host with --allow-remote-bases %s", shell.Quote(remote.Host)), "%w", err)
	case errors.As(err, &unset):
		return hint.Errorf(fmt.Sprintf("set it with --set %s=VALUE", unset.Variable), "%w", err)
	case errors.As(err, &vars) && errors.Is(err, build.ErrNotFound):
		return hint.Errorf("set its variables with --vars-file, or mark it optional in spec.postBuild.substituteFrom", "%w", err)
	}
	return err
}

// ReportChildren reports the error of each child Kustomization that failed to
// build.
func ReportChildren(a *app.App, err error) error {
	if err == nil {
		return nil
	}
	failures := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		failures = joined.Unwrap()
	}
	for _, failure := range failures {
		var child *build.ChildError
		if errors.As(failure, &child) && errors.Is(failure, build.ErrNotFound) && child.Source.Name != "" {
			failure = hint.Errorf(fmt.Sprintf("set its directory with --local-sources %s=PATH", shell.Quote(child.Source.String())), "%w", failure)
		}
		a.Report(ExplainBuild(failure))
	}
	return clierr.ErrReported
}

// warnOnce returns a function that prints each distinct warning once. It is
// safe for concurrent use.
func warnOnce(a *app.App) func(format string, args ...any) {
	var mu sync.Mutex
	said := map[string]bool{}
	return func(format string, args ...any) {
		text := redact.Text(fmt.Sprintf(format, args...))
		mu.Lock()
		defer mu.Unlock()
		if !said[text] {
			a.UI.Warning("%s", text)
		}
		said[text] = true
	}
}
