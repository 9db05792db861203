package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

func newBuild(a *app) *cobra.Command {
	return group("build", "Build the manifests that Flux would apply",
		newBuildArtifact(a), newBuildHelmRelease(a), newBuildKustomization(a))
}

// buildOptions are the flags of all that builds Kustomizations.
type buildOptions struct {
	path, file string
	sources    map[string]string
	ignore     []string
	recursive  bool
	strict     bool
	set        map[string]string
	varsFile   string
	dryRun     bool
	format     string
	secrets    secretDisplay
	remote     remoteBases
}

func newBuildKustomization(a *app) *cobra.Command {
	o, h := &buildOptions{format: "yaml"}, &helmOptions{}
	withHelm := false
	k, _ := controllers.FindKind("Kustomization")
	cmd := &cobra.Command{
		Use:     "kustomization [name]",
		Aliases: []string{"ks"},
		Short:   "Render what a Kustomization would apply",
		Long: `Render what a Kustomization would apply, as kustomize-controller does it:
its spec (patches, images, components, targetNamespace, ...) is laid over the
folder, variables are substituted, and the objects are labelled.

All of it happens in memory: nothing is written to the folder.

On a terminal the values of Secrets, and what was substituted from them, are
masked; --show-secrets prints them. In a pipe or a file they are printed, unless
--mask-secrets is given. What is encrypted with SOPS is always masked.

Without --path, the folder is spec.path in the Git work tree around the current
folder. With --dry-run, no cluster is asked: the Kustomization is read from
--kustomization-file, or found in the work tree, as are the ConfigMaps and
Secrets whose variables it substitutes.

With --recursive, children that have another source are built from what
source-controller has of it, unless --local-sources names a folder; an
OCIRepository that is not on the cluster is fetched from its registry.`,
		Example: `  # What the files here would become on the cluster
  flux build kustomization my-app

  # The same of another folder
  flux build kustomization my-app --path ./apps/my-app

  # Without a cluster
  flux build kustomization my-app --path ./apps/my-app \
    --kustomization-file ./clusters/production/my-app.yaml --dry-run

  # With the Kustomizations that it brings, theirs, and so on
  flux build kustomization flux-system --path ./clusters/production --recursive \
    --local-sources GitRepository/flux-system/flux-system=./

  # Down to what its HelmReleases install
  flux build kustomization flux-system --recursive --with-helm

  # With other values for variables
  flux build kustomization my-app --set region=eu --vars-file ./staging.env`,
		ValidArgsFunction: a.completeNames(k),
		RunE: func(cmd *cobra.Command, names []string) error {
			if withHelm {
				return a.buildKustomization(cmd, o, h, names)
			}
			return a.buildKustomization(cmd, o, nil, names)
		},
	}
	fs := cmd.Flags()
	o.add(fs)
	h.add(fs)
	fs.BoolVar(&withHelm, "with-helm", false, "render the HelmReleases that it brings, too")
	fs.BoolVar(&o.dryRun, "dry-run", false, "ask no cluster: what the build needs is taken from the work tree")
	fs.VarP(choice{&o.format, []string{"yaml", "json"}}, "output", "o", "print yaml or json")
	o.secrets.add(fs)
	return cmd
}

func (o *buildOptions) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.path, "path", "", "the folder to build (default spec.path in the Git work tree)")
	fs.StringVar(&o.file, "kustomization-file", "", "a file with the Kustomization, instead of the cluster's; - for standard input")
	fs.StringSliceVar(&o.ignore, "ignore-paths", nil, "leave out what these patterns match, in the format of .gitignore")
	fs.BoolVarP(&o.recursive, "recursive", "r", false, "build the Kustomizations that it brings, too")
	fs.StringToStringVar(&o.sources, "local-sources", nil, "the folders of other sources for --recursive, such as GitRepository/flux-system/my-repo=./repo")
	fs.BoolVar(&o.strict, "strict-substitute", false, "fail when a variable without a default has no value")
	fs.StringToStringVar(&o.set, "set", nil, "give variables values, such as region=eu, above those of the Kustomization")
	fs.StringVar(&o.varsFile, "vars-file", "", "a file of variables: NAME=value lines, a YAML map, a ConfigMap or a Secret")
	o.remote.add(fs)
	fs.Bool("in-memory-build", false, "accepted for compatibility: builds always happen in memory")
}

// buildKustomization also renders HelmReleases where h is given.
func (a *app) buildKustomization(cmd *cobra.Command, o *buildOptions, h *helmOptions, names []string) error {
	if len(names) != 1 {
		return hinted("flux build kustomization NAME", "one Kustomization name is required")
	}
	if err := o.secrets.check(); err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	plan, err := a.planBuild(ctx, cmd, o, names[0])
	if err != nil {
		return err
	}
	line := a.ui.Progress(a.now, "building")
	result, err := plan.run(ctx)
	line.Done()
	if result == nil {
		return explainBuild(err)
	}
	failed := a.reportChildren(err)
	if h != nil {
		if err := a.addReleases(ctx, o, h, plan, result); err != nil {
			failed = err
		}
	}
	return errors.Join(a.printBuild(o, result), failed, context.Cause(ctx))
}

// buildPlan is all that a build of a Kustomization needs.
type buildPlan struct {
	ks      *unstructured.Unstructured
	tree    fs.FS
	options build.Options
	// sources is nil where children are not built.
	sources build.Sources
	work    workTree
}

func (p *buildPlan) run(ctx context.Context) (*build.Result, error) {
	if p.sources == nil {
		return build.Kustomization(ctx, p.tree, p.ks, p.options)
	}
	return build.Recursive(ctx, p.tree, p.ks, p.options, p.sources)
}

// explainBuild adds the way out to what keeps a folder from being built.
func explainBuild(err error) error {
	var unset *build.UnsetError
	var vars *build.VariablesError
	var remote *build.RemoteError
	switch {
	case errors.As(err, &remote) && remote.Host != "":
		return hinted(fmt.Sprintf("if you trust it, allow its host with --allow-remote-bases %s", remote.Host), "%w", err)
	case errors.As(err, &unset):
		return hinted(fmt.Sprintf("give it a value with --set %s=VALUE", unset.Variable), "%w", err)
	case errors.As(err, &vars) && errors.Is(err, build.ErrNotFound):
		return hinted("give its variables with --vars-file, or mark it optional in spec.postBuild.substituteFrom", "%w", err)
	}
	return err
}

// reportChildren tells of each Kustomization that could not be built.
func (a *app) reportChildren(err error) error {
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
			failure = hinted(fmt.Sprintf("name its folder with --local-sources %s=PATH", child.Source), "%w", failure)
		}
		a.report(explainBuild(failure))
	}
	return errReported
}

// printBuild prints objects so that they can be applied, unless secret values
// are masked. What SOPS has encrypted is always masked.
func (a *app) printBuild(o *buildOptions, result *build.Result) error {
	items, masked := make([]unstructured.Unstructured, len(result.Objects)), 0
	for i, object := range result.Objects {
		shown, n := object.Unstructured, 0
		if o.secrets.masks(a.out) {
			shown, n = build.WithoutSecrets(object)
		} else {
			shown, _ = build.Masked(shown)
		}
		items[i], masked = *shown, masked+n
	}
	if masked > 0 {
		a.ui.Warning("secret values are masked (%d): print them with --show-secrets", masked)
	}
	if o.format == "json" {
		return output.PrintObjects(a.answer(o.format), o.format, items, false)
	}
	var b strings.Builder
	for _, item := range items {
		text, err := output.Manifest(item.Object)
		if err != nil {
			return fmt.Errorf("printing %s %q: %w", item.GetKind(), item.GetName(), err)
		}
		b.Write(text)
		b.WriteString("---\n")
	}
	return a.document(b.String())
}

// warnOnce returns a function that gives each warning once, to be called by
// several at a time.
func (a *app) warnOnce() func(format string, args ...any) {
	var mu sync.Mutex
	said := map[string]bool{}
	return func(format string, args ...any) {
		text := redact.Text(fmt.Sprintf(format, args...))
		mu.Lock()
		defer mu.Unlock()
		if !said[text] {
			a.ui.Warning("%s", text)
		}
		said[text] = true
	}
}
