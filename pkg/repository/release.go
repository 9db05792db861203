package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The values of .Release.Revision for an installation and for an upgrade.
const (
	Install = 1
	Upgrade = 2
)

// Attempt distinguishes renderings of a chart by their generated values.
type Attempt string

// The first and the second rendering of a chart.
const (
	First  Attempt = "first"
	Second Attempt = "second"
)

// Release renders the objects that a HelmRelease installs. served are additional API versions in the capabilities. It returns a
// charts.SourceError if the chart is not available.
func (g *Graph) Release(hr *unstructured.Unstructured, revision int, attempt Attempt, served ...string) (*Rendering, error) {
	reads := &reader{graph: g, lookup: g.lookup(nil)}
	options := g.Charts
	options.Twin, options.Revision, options.Reverse = g.found.objects[controllers.IDOf(hr.Object)].Twin, revision, attempt == Second
	options.APIVersions = slices.Concat(options.APIVersions, served)
	options.Lookup, options.Missing = reads, reads.missing(hr)
	options.Find, options.Sources, options.Untrusted = reads.find, reads.files, reads.untrusted
	rendered, err := g.Memo.render(reads, hr, options.Twin, fmt.Sprintf("%s rendering as revision %d with %q", attempt, revision, served), func() (*Rendering, error) {
		result, err := charts.HelmRelease(g.ctx, hr, options)
		if err != nil {
			return nil, err
		}
		built := result.Result
		built.Objects = append(result.CRDs, built.Objects...)
		return &Rendering{Owner: hr, Build: &built, Hooks: build.Result{Objects: result.Hooks}, Unserved: result.Unserved, Namespace: result.Namespace}, nil
	})
	if err == nil && g.Rendered != nil {
		g.Rendered(rendered.Build)
		g.Rendered(&rendered.Hooks)
	}
	return rendered, err
}

// untrusted reports whether the host of a repository is not trusted. A nil repository is defined in a chart.
func untrusted(g *Graph, repository *unstructured.Unstructured) bool {
	if g.Untrusted || g.Reviewed == nil || repository == nil {
		return g.Untrusted || g.Reviewed != nil
	}
	before, err := g.Reviewed.Object(controllers.IDOf(repository.Object))
	return err != nil || !charts.SameHost(before, repository)
}

// Installed adds the Flux objects of a HelmRelease to the graph, and returns a rendering with only these.
func (g *Graph) Installed(release *Rendering) *Rendering {
	if release == nil {
		return nil
	}
	n := &node{owner: release.Owner, state: done, built: &Rendering{Owner: release.Owner, Build: &build.Result{}, Namespace: release.Namespace}}
	for _, o := range release.Build.Objects {
		if _, ok := controllers.IDOf(o.Unstructured.Object).Flux(); !ok && !mayCreateFlux(o.Unstructured) {
			continue
		}
		if o.GetNamespace() == "" {
			o.Unstructured = o.DeepCopy()
			o.SetNamespace(release.Namespace)
		}
		n.built.Build.Objects = append(n.built.Build.Objects, o)
	}
	if g.count(release.Owner, n.built.Build) == nil {
		g.take(n)
	}
	return n.built
}

// chart is the location of the chart of a HelmRelease.
type chart struct {
	source controllers.ID
	// names are the paths of the chart and the values files in the source.
	names []string
	// spec is the HelmChart spec, or nil if the source is the chart.
	spec map[string]any
}

// chartOf returns the chart of a HelmRelease. It returns false if the HelmChart is missing in the repository or invalid.
func chartOf(g *Graph, hr *unstructured.Unstructured) (chart, bool) {
	spec, _, _ := unstructured.NestedMap(hr.Object, "spec", "chart", "spec")
	namespace := hr.GetNamespace()
	if referred, ok, _ := unstructured.NestedStringMap(hr.Object, "spec", "chartRef"); ok {
		source := referenceIn(referred, namespace)
		if _, err := g.Content(source); err == nil || source.Kind != controllers.HelmChart {
			return chart{source: source, names: []string{"."}}, true
		}
		o, err := g.Object(source)
		if err != nil {
			return chart{}, false
		}
		spec, _, _ = unstructured.NestedMap(o.Object, "spec")
		namespace = source.Namespace
	}
	var part struct {
		Chart       string            `json:"chart"`
		ValuesFiles []string          `json:"valuesFiles"`
		SourceRef   map[string]string `json:"sourceRef"`
	}
	if build.Decode(spec, &part) != nil {
		return chart{}, false
	}
	return chart{referenceIn(part.SourceRef, namespace), append([]string{part.Chart}, part.ValuesFiles...), spec}, true
}

// referenceIn returns the referenced object. namespace is the default namespace.
func referenceIn(reference map[string]string, namespace string) controllers.ID {
	if reference["namespace"] != "" {
		namespace = reference["namespace"]
	}
	return controllers.FluxID(reference["kind"], namespace, reference["name"])
}

// MayInstallFlux reports whether a HelmRelease may install Kustomizations or HelmReleases: its spec or its values contain
// some, or its chart is in this repository, and the chart or the values mention Flux. Values that are not available may mention Flux
// if the chart composes the API version or kind of an object. Charts of other repositories are not fetched.
func (g *Graph) MayInstallFlux(hr *unstructured.Unstructured) bool {
	values, complete := valuesOf(g, hr)
	if slices.ContainsFunc(values, fluxVersions().Match) {
		return true
	}
	c, ok := chartOf(g, hr)
	if !ok {
		return false
	}
	tree, err := g.Content(c.source)
	if err != nil {
		return false // it is not in this repository
	}
	at := chartAt{tree, c.names[0]}
	known, ok := g.templates[at]
	if !ok {
		known = templatesOf(at)
		g.templates[at] = known
	}
	return known.mention || known.compose && !complete || slices.ContainsFunc(values, mentionsFlux) || slices.ContainsFunc(c.names[1:], func(file string) bool {
		text, err := fs.ReadFile(tree, file)
		return err == nil && mentionsFlux(text)
	})
}

// chartAt is a chart in a tree.
type chartAt struct {
	tree Tree
	name string
}

// templates holds what is known of the files of a chart: they may mention Flux, and they compose the API version or the kind of an
// object.
type templates struct{ mention, compose bool }

func templatesOf(at chartAt) templates {
	files, err := charts.ChartIn(at.tree, at.name)
	if err != nil || files.Archive != nil {
		return templates{mention: !errors.Is(err, fs.ErrNotExist)} // rendering it reports the error
	}
	found := templates{}
	for name, text := range files.Files {
		if strings.HasSuffix(name, ".tgz") || mentionsFlux(text) {
			return templates{mention: true}
		}
		found.compose = found.compose || composedVersion().Match(text) || composedKind().Match(text)
	}
	return found
}

// mentionsFlux reports whether a text contains what all API groups of Flux have in common. A template may add the rest.
func mentionsFlux(text []byte) bool { return bytes.Contains(text, []byte("fluxcd")) }

// valuesOf returns the spec and the values of a HelmRelease. complete is false if some values are not available.
func valuesOf(g *Graph, hr *unstructured.Unstructured) (values [][]byte, complete bool) {
	spec, _ := json.Marshal(hr.Object["spec"]) // decoded from YAML
	values, complete = [][]byte{spec}, true
	for _, object := range build.DataReferences(hr) {
		data, err := g.lookup(nil).Data(g.ctx, object)
		if err != nil {
			complete = false
			continue
		}
		values = slices.AppendSeq(values, maps.Values(data))
	}
	return values, complete
}

// fluxVersions matches the API versions of Kustomizations and HelmReleases, but not labels of Flux.
var fluxVersions = lazy.Regexp(`(kustomize|helm)\.toolkit\.fluxcd\.io/v\d|fluxcd\.controlplane\.io/v\d`)

// An API version or a kind that contains a template. Expressions that begin with literal text are several times faster than
// alternatives.
var (
	composedVersion = lazy.Regexp(`apiVersion["']?\s*:[^\n]*\{\{`)
	composedKind    = lazy.Regexp(`kind["']?\s*:[^\n]*\{\{`)
)
