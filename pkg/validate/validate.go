// Package validate checks the objects that a repository deploys: their schemas and validation rules,
// the Flux objects and Secrets that they refer to, their API versions, and substituted variables.
package validate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/kube/expression"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/inspect"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/builds"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// Options configure a validation.
type Options struct {
	repository.Options
	// Schemas validates objects with schemas.
	Schemas verdict.Schemas
	// Versions validates with the CustomResourceDefinitions of other Flux versions. It may be nil.
	Versions verdict.Schemas
	// Kubernetes is the minor version, such as 1.36.
	Kubernetes string
	// CRDs holds the Flux CustomResourceDefinitions. CustomResourceDefinitions in the repository replace them.
	CRDs []*unstructured.Unstructured
	// CRDsOf returns the CustomResourceDefinitions of a Flux version. If it is set, the version of a FluxInstance replaces
	// an assumed version.
	CRDsOf func(version string) ([]*unstructured.Unstructured, error)
	// Supported returns the CustomResourceDefinitions of all supported Flux versions. It may be nil.
	Supported func() ([]*unstructured.Unstructured, error)
	// Expressions compiles CEL expressions. If it is nil, they are not validated.
	Expressions expression.Evaluator
	// Assumed is set if the cluster may have other Flux CustomResourceDefinitions. Violations then do not make an object
	// invalid.
	Assumed bool
	// FluxVersion is the Flux version of CRDs.
	FluxVersion string
	// Note is called for each assumption. It may be nil.
	Note func(text string)
	// Rules returns additional findings. It may be nil.
	Rules func(Deployment) []Found
}

// Deployment holds the objects that a revision deploys to a cluster.
type Deployment struct {
	// Namespace is the namespace of Flux.
	Namespace string
	Objects   []Object
	// Complete is set if everything was rendered.
	Complete bool
}

// Object is an object of a deployment.
type Object struct {
	build.Object
	ID controllers.ID
	// Owner is the Kustomization, HelmRelease, ResourceSet or FluxInstance that applies the object.
	Owner *unstructured.Unstructured
}

// Found is a finding about an object of a deployment.
type Found struct {
	// Index is the position of the object in the deployment.
	Index int
	Finding
}

// Run renders what a revision deploys to a cluster, and validates it.
func Run(ctx context.Context, at repository.Revision, o Options) (*Result, error) {
	c := &cluster{Options: o, unset: map[unset]string{}, missing: map[controllers.ID]bool{}}
	if err := c.render(ctx, at); err != nil {
		return nil, err
	}
	c.collect()
	if err := check(ctx, c); err != nil {
		return nil, err
	}
	if err := c.locate(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Compare(slices.Index(severities[:], a.Severity), slices.Index(severities[:], b.Severity))
	})
	result := &Result{Path: o.Path, Owners: len(c.deployed.Renderings), Objects: len(c.objects), Findings: c.findings}
	c.concealed.Conceal(result.Findings)
	budget.ShortenTexts(result.Findings)
	if result.Findings == nil {
		result.Findings = []Finding{}
	}
	for _, o := range c.objects {
		if !o.unknown {
			result.Validated++
		}
	}
	return result, nil
}

// check validates the objects.
func check(ctx context.Context, c *cluster) error {
	if err := c.schemas(ctx); err != nil {
		return err
	}
	if err := checkExpressions(ctx, c); err != nil {
		return err
	}
	checkLabels(c)
	checkEncryption(c)
	c.omissions()
	c.lacking()
	checkOverlaps(c)
	checkDeadlocks(c)
	c.references(ctx)
	c.variables()
	checkKustomizations(c)
	checkWorkloads(c)
	checkRules(c)
	return nil
}

// checkRules adds the findings of Options.Rules.
func checkRules(c *cluster) {
	if c.Rules == nil {
		return
	}
	d := Deployment{Namespace: c.Namespace, Complete: c.deployed.Complete, Objects: make([]Object, len(c.objects))}
	for i, o := range c.objects {
		d.Objects[i] = Object{o.Object, o.ref.ID, o.side.Owner}
	}
	for _, f := range c.Rules(d) {
		c.add(c.objects[f.Index], f.Finding)
	}
}

// cluster validates the objects of a cluster.
type cluster struct {
	Options
	graph    *repository.Graph
	deployed *repository.Deployed
	// concealed replaces text that is derived from secret values in messages and names.
	concealed diff.Concealment
	objects   []*object
	byRef     map[controllers.ID]*object
	// owners holds the rendered Kustomizations and HelmReleases.
	owners   map[controllers.ID]*unstructured.Unstructured
	findings []Finding
	// unset holds the variables without a value, with the fields that contain them.
	unset   map[unset]string
	order   []unset
	missing map[controllers.ID]bool
}

// render renders everything that the revision deploys, without trusting its content.
func (c *cluster) render(ctx context.Context, at repository.Revision) error {
	c.Build.Unset, c.Rendered, c.Untrusted = c.recordUnset, c.concealed.Add, true
	c.Missing = func(*unstructured.Unstructured, controllers.ID, error) bool { return true }
	var err error
	if c.graph, err = repository.Open(ctx, at, c.Options.Options); err != nil {
		return err
	}
	if c.graph.Root() == nil {
		return &sourcetree.PathError{Path: c.Path, Problem: "not found in " + at.Name}
	}
	if c.deployed, err = c.graph.Deploy(); err != nil {
		return err
	}
	if err := c.selectVersion(); err != nil {
		return err
	}
	for _, text := range c.graph.Assumptions() {
		c.note(c.concealed.Text(text))
	}
	all := make([]builds.Pair, len(c.deployed.Renderings))
	for i, rendering := range c.deployed.Renderings {
		all[i].After = rendering
	}
	builds.Complete(all)
	return nil
}

// collect collects the objects of all Kustomizations and HelmReleases.
func (c *cluster) collect() {
	c.byRef, c.owners = map[controllers.ID]*object{}, map[controllers.ID]*unstructured.Unstructured{}
	for _, side := range c.deployed.Renderings {
		c.owners[controllers.IDOf(side.Owner.Object)] = side.Owner
		for _, o := range side.Build.Objects {
			found := &object{Object: o, side: side, ref: controllers.VersionedIDOf(o.Unstructured.Object)}
			c.objects = append(c.objects, found)
			c.byRef[found.ref.ID] = found
		}
	}
}

// omissions reports the Kustomizations and HelmReleases that were not rendered.
func (c *cluster) omissions() {
	for _, omitted := range c.deployed.Omitted {
		f := Finding{Severity: Unknown, Rule: RuleNotRendered, Object: omitted.Owner, Owner: omitted.Owner, Message: omitted.Reason}
		if !omitted.Unavailable && c.conclusive(omitted) {
			f.Severity, f.Rule = Invalid, RuleBuild
		}
		var remote *inspect.RemoteError
		if errors.As(omitted.Err, &remote) && remote.Host != "" {
			f.Fix = "if you trust it, allow its host with --allow-remote-bases " + remote.Host
		}
		c.findings = append(c.findings, f)
	}
}

// conclusive reports whether a build failed because of the files in the repository, and not because
// of a chart, which may require a cluster or the network, or because of unknown values.
func (c *cluster) conclusive(omitted repository.Omitted) bool {
	ref := omitted.Owner
	var remote *inspect.RemoteError
	kustomization := ref.GroupKind() == controllers.IDOf(c.graph.Root().Object).GroupKind()
	if !kustomization && !ref.IsResourceSet() && !ref.IsFluxInstance() || len(c.Charts.Hosts) > 0 || errors.As(omitted.Err, &remote) || exceeded(omitted.Err) || len(c.graph.Lacking(ref.ID)) > 0 {
		return false
	}
	definition := c.byRef[ref.ID]
	return definition == nil || !substituted(definition.Object.Object)
}
