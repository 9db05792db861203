package charts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kustomize "sigs.k8s.io/kustomize/api/types"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Options configures the build of a HelmRelease in addition to its spec.
type Options struct {
	// Renderer renders the chart.
	Renderer Renderer
	// Lookup finds the ConfigMaps and Secrets of spec.valuesFrom and the Secrets of repositories.
	// If it is nil, they are not looked up.
	Lookup build.Lookup
	// Missing is called for a ConfigMap or Secret that cannot be read and is not optional. If it
	// returns true, the build continues without the object. Nil fails the build.
	Missing func(object controllers.ID, err error) bool
	// Login returns credentials for OCI repositories without a Secret. Nil returns none.
	Login Login
	// Find finds the HelmRepository, OCIRepository or HelmChart that the release references. It
	// returns ErrNotFound if the object does not exist.
	Find func(ctx context.Context, object controllers.ID) (*unstructured.Unstructured, error)
	// Untrusted reports whether unreviewed input references a repository. Its chart is then fetched only from public
	// addresses and from Hosts. It is called with nil for the repositories of a chart in Sources. Nil trusts all
	// repositories. Schemas of charts are never trusted.
	Untrusted func(ctx context.Context, repository *unstructured.Unstructured) bool
	Hosts     []string
	// Local returns the packed chart that is used in place of one in a Helm repository, or ErrNotFound. Nil returns none.
	Local func(ctx context.Context, chart Chart) ([]byte, error)
	// Sources returns the trees of charts in Git repositories and buckets.
	Sources build.Sources
	// SourceRevision returns the revision of a source, such as main@sha1:…, or "" if it is not
	// known. source-controller appends it to the version of charts with the reconcile strategy
	// Revision. Nil returns "" for all sources.
	SourceRevision func(ctx context.Context, source controllers.ID) string
	// ChartGeneration is the metadata.generation of the HelmChart of the release, or 0 if it is not
	// known. source-controller appends it to the version of charts with values files.
	ChartGeneration int64
	// Chart is rendered instead of the chart of the release if it is set.
	Chart *Chart
	// Values overrides the values of the release.
	Values map[string]any
	// Live finds the objects of the cluster that templates look up. Nil finds no objects.
	Live build.Finder
	// Revision is the number of the release to build. A number above 1 is an upgrade.
	Revision int
	// Reverse is set in the second of two renderings that are compared to find unstable values.
	Reverse bool
	// KubeVersion and APIVersions are the capabilities of the cluster in the chart.
	KubeVersion string
	APIVersions []string
	// Kustomizer runs post-renderers whose work is not bounded by the size of their input.
	Kustomizer build.Kustomizer
	// Twin is the Twin of the HelmRelease, if another build has rendered it.
	Twin *unstructured.Unstructured
}

// Login returns credentials for the registry of an OCIRepository or HelmRepository, or "" for
// anonymous access.
type Login func(ctx context.Context, repository *unstructured.Unstructured) (username, password string, err error)

// Result holds the objects of a HelmRelease.
type Result struct {
	build.Result
	// CRDs holds the objects in the directory crds of the chart, which Helm applies before all others.
	// It is empty if spec.install.crds or spec.upgrade.crds is Skip.
	CRDs []build.Object
	// Hooks holds the hooks, which Helm runs during a release and which are not part of it.
	Hooks []build.Object
	Target
	// Chart and Version are the name and version of the rendered chart.
	Chart, Version string
	// Unserved is as in Rendered.
	Unserved []string
	// Values holds the values of the release without the default values of the chart.
	Values map[string]any
}

// releaseSpec holds the fields of the spec of a HelmRelease that a build reads.
type releaseSpec struct {
	TargetNamespace    string            `json:"targetNamespace"`
	StorageNamespace   string            `json:"storageNamespace"`
	ChartRef           *sourceReference  `json:"chartRef"`
	Chart              *chartTemplate    `json:"chart"`
	Values             map[string]any    `json:"values"`
	ValuesFrom         []valuesReference `json:"valuesFrom"`
	PostRenderers      []postRenderer    `json:"postRenderers"`
	PostRenderStrategy string            `json:"postRenderStrategy"`
	CommonMetadata     struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"commonMetadata"`
	Test struct {
		Enable bool `json:"enable"`
	} `json:"test"`
	Install releaseAction `json:"install"`
	Upgrade releaseAction `json:"upgrade"`
}

// releaseAction has the fields that spec.install and spec.upgrade share.
type releaseAction struct {
	CRDs                    string `json:"crds"`
	SkipCRDs                bool   `json:"skipCRDs"`
	DisableSchemaValidation bool   `json:"disableSchemaValidation"`
	DisableHooks            bool   `json:"disableHooks"`
}

// HookEvents returns the events at which Helm creates a hook, such as pre-upgrade.
func HookEvents(hook *unstructured.Unstructured) []string {
	events := strings.Split(hook.GetAnnotations()[hookAnnotation], ",")
	for i, event := range events {
		events[i] = strings.TrimSpace(event)
	}
	return events
}

const hookAnnotation = "helm.sh/hook"

// SameSpec reports whether two versions of a HelmRelease render to the same objects and hooks if their charts and the data of
// spec.valuesFrom are the same. Fields that only helm-controller uses, such as spec.install.remediation, may differ.
func SameSpec(a, b *unstructured.Unstructured) bool {
	var was, is releaseSpec
	if a.GetAPIVersion() != b.GetAPIVersion() || controllers.ReleaseName(a.Object) != controllers.ReleaseName(b.Object) ||
		build.Decode(a.Object["spec"], &was) != nil || build.Decode(b.Object["spec"], &is) != nil {
		return false
	}
	return equality.Semantic.DeepEqual(was, is)
}

// action returns spec.install for the first revision and spec.upgrade for all others.
func (s *releaseSpec) action(revision int) releaseAction {
	if revision > 1 {
		return s.Upgrade
	}
	return s.Install
}

type sourceReference struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// chartTemplate is the object that is created for a release: a HelmChart unless it has another
// kind.
type chartTemplate struct {
	Kind string    `json:"kind"`
	Spec chartSpec `json:"spec"`
}

// chartSpec holds the fields that HelmRelease and HelmChart share.
type chartSpec struct {
	Chart                    string          `json:"chart"`
	Version                  string          `json:"version"`
	SourceRef                sourceReference `json:"sourceRef"`
	ValuesFiles              []string        `json:"valuesFiles"`
	IgnoreMissingValuesFiles bool            `json:"ignoreMissingValuesFiles"`
	ReconcileStrategy        string          `json:"reconcileStrategy"`
}

type postRenderer struct {
	Kustomize *struct {
		Patches []build.Patch     `json:"patches"`
		Images  []kustomize.Image `json:"images"`
	} `json:"kustomize"`
}

// HelmRelease renders the objects that helm-controller would install for a HelmRelease. Like
// Kustomization, it renders again if it has read secret values.
func HelmRelease(ctx context.Context, hr *unstructured.Unstructured, o Options) (*Result, error) {
	shadow := build.NewShadow(o.Twin)
	first := &helmBuild{ctx: ctx, hr: hr, options: o, shadow: shadow}
	first.options.Lookup, first.options.Live, first.options.Find = shadow.Lookup(o.Lookup), shadow.Finder(o.Live), shadow.Find(o.Find)
	result, err := first.run()
	if shadow.Secret && ctx.Err() == nil {
		first.skipSchema = err == nil
		again, failed := first.repeat()
		if err != nil {
			err = shadow.Discreet(err, failed, first.secrets)
		} else {
			build.Mark(result.Objects, again.Objects)
			build.Mark(result.Hooks, again.Hooks)
		}
	}
	if err != nil {
		owner := build.Object{Unstructured: hr, Twin: o.Twin}.Alias()
		return nil, budget.Short(fmt.Errorf("building %s: %w", owner, err))
	}
	return result, nil
}

// helmBuild is a build of a HelmRelease, or its repetition with other secret values.
type helmBuild struct {
	shadow  *build.Shadow
	ctx     context.Context // of a single build
	hr      *unstructured.Unstructured
	options Options
	// secrets holds the values that come from Secrets.
	secrets []string
	// unavailable is the error of finding the chart.
	unavailable error
	// skipSchema is set if the first build has validated the values.
	skipSchema bool
}

func (b *helmBuild) run() (*Result, error) {
	o := &b.options
	var spec releaseSpec
	if err := build.Decode(b.hr.Object["spec"], &spec); err != nil {
		return nil, fmt.Errorf("reading the spec: %w", err)
	}
	values, secrets, err := releaseValues(b.ctx, b.hr, &spec, *o)
	if b.secrets = secrets; err != nil {
		return nil, err
	}
	if o.Chart == nil {
		if !b.shadow.Repeating {
			o.Chart, b.unavailable = (&chartFinder{ctx: b.ctx, hr: b.hr, options: *o}).chart(&spec)
		}
		if b.unavailable != nil {
			return nil, b.unavailable
		}
	}
	result := &Result{Target: spec.target(b.hr), Values: MergeValues(values, o.Values)}
	rendered, err := o.Renderer.Render(b.ctx, Release{
		Chart: *o.Chart, Name: result.Name, Namespace: result.Namespace, Values: result.Values,
		KubeVersion: o.KubeVersion, APIVersions: o.APIVersions, Find: o.Live, Revision: o.Revision,
		SkipSchema: b.skipSchema || spec.action(o.Revision).DisableSchemaValidation, Reverse: o.Reverse, Secret: b.shadow.Secret,
	})
	b.secrets = append(b.secrets, b.shadow.Values...)
	slices.Sort(b.secrets)
	b.secrets = slices.Compact(b.secrets)
	if err != nil {
		return nil, build.WithoutValues(err, b.secrets)
	}
	result.SecretValues, result.Chart, result.Version, result.Unserved = b.secrets, rendered.Chart, rendered.Version, rendered.Unserved
	return result, result.take(b.ctx, &build.Bounds{Budget: budget.New(budget.Default()), Kustomizer: o.Kustomizer}, b.hr, &spec, rendered, o.Revision)
}

// repeat renders again with other secret values and without reading anything. The result is empty
// if that fails.
func (b *helmBuild) repeat() (*Result, error) {
	b.shadow.Repeating = true
	again := *b
	if b.shadow.Indirect && b.unavailable != nil { // the source of the chart may be derived from a secret value
		again.unavailable = errors.New("")
	}
	if b.options.Missing != nil {
		again.options.Missing = func(controllers.ID, error) bool { return true } // the first build has called it
	}
	if b.options.Twin != nil {
		again.hr = b.options.Twin
	}
	result, err := again.run()
	if err != nil {
		return &Result{}, err
	}
	return result, nil
}

// take adds the objects of rendered documents to the result, with the labels and post-renderers
// of the controller applied.
func (r *Result) take(ctx context.Context, limits *build.Bounds, hr *unstructured.Unstructured, spec *releaseSpec, rendered *Rendered, revision int) error {
	objects, err := spec.labeled(ctx, limits, hr, rendered)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if _, hook := o.GetAnnotations()[hookAnnotation]; hook {
			r.Hooks = append(r.Hooks, o)
		} else {
			r.Objects = append(r.Objects, o)
		}
	}
	if action := spec.action(revision); action.SkipCRDs || action.CRDs == "Skip" {
		return nil
	}
	crds, err := postRendered(ctx, limits, rendered.CRDs, &releaseSpec{})
	for _, o := range crds {
		if o.GetKind() != "CustomResourceDefinition" {
			continue // the controller ignores other kinds in this directory
		}
		own(&o, hr, nil)
		o.Ahead = true
		r.CRDs = append(r.CRDs, o)
	}
	return err
}

// ErrNoChart is returned for a HelmRelease without a chart.
var ErrNoChart = errors.New("neither spec.chart nor spec.chartRef is set")
