package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/generator"
	"github.com/fluxkit/flux/pkg/controllers"
)

// NewPlan locates the Kustomization, its directory and its variables.
func (b *Builder) NewPlan(ctx context.Context, namespace, name string) (*Plan, error) {
	if err := CheckFolder(b.Path); err != nil {
		return nil, err
	}
	work, err := git.Around(cmp.Or(b.Path, "."))
	if err != nil {
		return nil, err
	}
	ks, err := b.objectFor(ctx, wantedKustomization(), work, namespace, name)
	if err != nil {
		return nil, err
	}
	work = work.ForSource(b.Path, Text(ks, "spec", "path"))
	vars, secretVars, err := b.Vars()
	if err != nil {
		return nil, err
	}
	plan := &Plan{Ks: ks, Work: work, Options: build.Options{
		Vars: vars, SecretVars: secretVars, Strict: b.Strict, Ignore: b.Ignore, Lookup: b.lookup(work),
		Missing: b.missing("variables", "--vars-file"), Kustomizer: b.Kustomizer,
	}}
	if _, substitutes, _ := unstructured.NestedMap(ks.Object, "spec", "postBuild"); len(vars) > 0 && !substitutes {
		b.Warn("Kustomization %q has no spec.postBuild: no variables are substituted in its own objects", name)
	}
	fetcher := &Fetcher{Builder: b, Work: work}
	switch {
	case b.Path != "":
		plan.Options.Path, err = work.Inside(b.Path)
	case !work.Git && !b.DryRun && build.SourceOf(ks).Name != "":
		if plan.Tree, err = fetcher.fetch(ctx, build.SourceOf(ks)); err != nil {
			err = hint.Errorf("set --path, or run the command in a clone of the repository", "%w", err)
		}
	case !work.Git:
		err = hint.Errorf("set the directory with --path", "the current directory is not in a Git work tree: cannot resolve spec.path")
	}
	if err == nil && plan.Tree == nil {
		plan.Tree, plan.Options.Filter, err = b.Artifact(ctx, work, build.SourceOf(ks))
	}
	if err == nil && b.Recursive {
		plan.Sources, err = plan.children(fetcher)
	}
	return plan, err
}

// children returns the sources that the Kustomizations in the build are built
// from.
func (p *Plan) children(fetcher *Fetcher) (build.Sources, error) {
	local, err := fetcher.SourcesWithRemotes(p.Work, p.Ks)
	if err != nil {
		return nil, err
	}
	withFetched := fetcher.WithFetched(local)
	if fetcher.Path != "" || p.Work.Git {
		return withFetched, nil
	}
	return func(ctx context.Context, source controllers.ID) (fs.FS, error) {
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
		return &build.PathError{Path: path, Problem: "there is no such directory"}
	case err != nil:
		return fmt.Errorf("reading %s: %w", path, err)
	case !info.IsDir():
		return &build.PathError{Path: path, Problem: "it is not a directory"}
	}
	return nil
}

// Plan has the inputs of a Kustomization build.
type Plan struct {
	Ks      *unstructured.Unstructured
	Tree    fs.FS
	Options build.Options
	// Sources is nil unless child Kustomizations are built.
	Sources build.Sources
	Work    git.Workspace
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
		return hint.Errorf(fmt.Sprintf("if you trust it, allow its host with --allow-remote-bases %s", hint.Quote(remote.Host)), "%w", err)
	case errors.As(err, &unset):
		return hint.Errorf(fmt.Sprintf("set it with --set %s=VALUE", unset.Variable), "%w", err)
	case errors.As(err, &vars) && errors.Is(err, build.ErrNotFound):
		return hint.Errorf("set its variables with --vars-file, or mark it optional in spec.postBuild.substituteFrom", "%w", err)
	}
	return err
}

// ExplainChild adds a remedy to the error of a child Kustomization that failed to build.
func ExplainChild(err error) error {
	var child *build.ChildError
	if errors.As(err, &child) && errors.Is(err, build.ErrNotFound) && child.Source.Name != "" {
		err = hint.Errorf(fmt.Sprintf("set its directory with --local-sources %s=PATH", hint.Quote(child.Source.String())), "%w", err)
	}
	return ExplainBuild(err)
}
