package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/mapped"
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
	planned := Operated(b, Plan{Ks: ks, Work: work, mappings: b.Mappings, lacking: b.missing("data", ""), Options: build.Options{
		Vars: vars, SecretVars: secretVars, Strict: b.Strict, Ignore: b.Ignore, Lookup: b.lookup(work),
		Missing: b.missing("variables", "--vars-file"), Kustomizer: b.Kustomizer, Cache: b.Cache,
	}})
	plan := &planned
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

// Operated adds the inputs of ResourceSets to a plan: those of the options, and those that providers of the cluster export.
func Operated(b *Builder, p Plan) Plan {
	p.inputs = b.Inputs
	if !b.DryRun {
		p.provider = func(ctx context.Context, provider controllers.ID) (*unstructured.Unstructured, error) {
			found, err := b.findSource(ctx, p.Work, provider)
			var missing *kube.MissingKindError
			if errors.As(err, &missing) {
				return nil, build.ErrNotFound
			}
			return found, err
		}
	}
	return p
}

// children returns the sources that the Kustomizations in the build are built
// from.
func (p *Plan) children(fetcher *Fetcher) (build.Sources, error) {
	local, err := fetcher.SourcesWithRemotes(p.Work, p.Ks)
	if err != nil {
		return nil, err
	}
	withFetched := fetcher.WithFetched(local)
	if clone := fetcher.cloneOf(p.Work); clone != nil {
		p.inClone = &inClone{clone, fetcher.Builder, p, nil}
		if p.inClone.local, err = fetcher.LocalSources(p.Work, p.Ks); err != nil {
			return nil, err
		}
	}
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
	return sourcetree.DirectoryError(path, info, err)
}

// Plan contains the inputs of a Kustomization build.
type Plan struct {
	Ks      *unstructured.Unstructured
	Tree    fs.FS
	Options build.Options
	// Sources is nil unless child Kustomizations are built.
	Sources build.Sources
	Work    git.Workspace

	// inClone is nil if sources do not come from the clone of the work tree.
	inClone  *inClone
	mappings []mapped.Mapping
	inputs   map[controllers.ID][]map[string]any
	// provider returns an input provider of the cluster. It is nil without a cluster.
	provider func(ctx context.Context, provider controllers.ID) (*unstructured.Unstructured, error)
	// lacking is called for data that a ResourceSet cannot copy. It may be nil.
	lacking func(object controllers.ID, err error) bool
	// deployed holds the objects that the Kustomization and its children apply.
	deployed *repository.Deployed
}

// Run builds the Kustomization, and its children if Sources is set. A child that cannot be built is skipped and reported by
// a ChildError in the error, which is then returned together with a result.
func (p *Plan) Run(ctx context.Context) (*build.Result, error) {
	if p.Sources == nil {
		return build.Kustomization(ctx, p.Tree, p.Ks, p.Options)
	}
	var contents repository.Contents = stored(p.Sources)
	if p.inClone != nil {
		contents = p.inClone
	}
	options := repository.Options{
		Path: p.Options.Path, Root: p.Ks, Inputs: p.inputs, Provider: p.provider, Build: p.Options, Contents: &mapped.Sources{Mappings: p.mappings, Otherwise: contents},
		Folders: map[controllers.ID]repository.Folder{build.SourceOf(p.Ks): {Tree: p.Tree, Artifact: true}},
	}
	if p.inClone != nil {
		options.Submodules = func(tree repository.Tree) (repository.Tree, error) {
			opened, err := p.inClone.clone()
			if err != nil {
				return nil, err
			}
			return opened.Submodules(ctx, tree)
		}
	}
	if missing := p.Options.Missing; missing != nil {
		options.Missing = func(owner *unstructured.Unstructured, object controllers.ID, err error) bool {
			if controllers.IDOf(owner.Object).IsResourceSet() {
				return p.lacking(object, err)
			}
			return missing(object, err)
		}
	}
	options.Build.Budget = budget.New(budget.Default()) // all builds share one budget
	graph, err := repository.Open(ctx, repository.Revision{Tree: filetree.From(p.Tree)}, options)
	if err != nil {
		return nil, err
	}
	if p.deployed, err = graph.Deploy(); err != nil {
		return nil, err
	}
	result := &build.Result{}
	for _, rendering := range p.deployed.Renderings {
		result.Add(rendering.Build)
	}
	if len(p.deployed.Renderings) == 0 {
		return nil, p.deployed.Omitted[0].Err // an error of the parent Kustomization
	}
	return result, errors.Join(p.failures(0)...)
}

// failures returns the errors of the omitted children, starting at index known.
func (p *Plan) failures(known int) []error {
	var failed []error
	for _, o := range p.deployed.Omitted[known:] {
		failed = append(failed, &ChildError{o.Alias, o.Source, o.Err})
	}
	return failed
}

// follow builds the Kustomizations that a HelmRelease installs, and returns their objects.
func (p *Plan) follow(hr *unstructured.Unstructured, rendered *charts.Result) (*build.Result, []error) {
	added := &build.Result{}
	if p.deployed == nil {
		return added, nil
	}
	known := len(p.deployed.Omitted)
	for _, rendering := range p.deployed.Follow(&repository.Rendering{Owner: hr, Build: &rendered.Result, Namespace: rendered.Namespace}) {
		added.Add(rendering.Build)
	}
	return added, p.failures(known)
}

// stored contains the artifacts of sources.
type stored build.Sources

// Content implements repository.Contents.
func (s stored) Content(ctx context.Context, r repository.Request) (repository.Content, error) {
	tree, err := s(ctx, r.Source)
	return repository.Content{Files: tree, Artifact: true}, err
}

// ChildError is returned for a child Kustomization that cannot be built.
type ChildError struct {
	Child, Source controllers.ID
	err           error
}

func (e *ChildError) Error() string {
	var reference *referenceError
	if errors.As(e.err, &reference) {
		return fmt.Sprintf("building %s: %s", e.Child, reference)
	}
	if errors.Is(e.err, build.ErrNotFound) {
		return fmt.Sprintf("building %s: its source %s is not available", e.Child, e.Source)
	}
	if prefix := fmt.Sprintf("building %s: ", e.Child); !strings.HasPrefix(e.err.Error(), prefix) {
		return prefix + e.err.Error()
	}
	return e.err.Error()
}

// Unwrap returns the underlying error.
func (e *ChildError) Unwrap() error { return e.err }

// ExplainBuild adds a remedy to a build error.
func ExplainBuild(err error) error {
	var unset *build.UnsetError
	var vars *build.VariablesError
	var remote *inspect.RemoteError
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
	var child *ChildError
	if errors.As(err, &child) && errors.Is(err, build.ErrNotFound) && child.Source.Name != "" {
		err = hint.Errorf(fmt.Sprintf("set its directory with --local-sources %s=PATH", hint.Quote(child.Source.String())), "%w", err)
	}
	return ExplainBuild(err)
}
