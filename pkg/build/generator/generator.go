// Package generator renders the ExternalArtifacts of ArtifactGenerators as
// source-watcher does, from local copies of their sources.
package generator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Group is the API group of ArtifactGenerators, and Kind their kind. Artifact is the kind that they produce.
const (
	Group    = "source.extensions.fluxcd.io"
	Kind     = "ArtifactGenerator"
	Artifact = "ExternalArtifact"
)

// ErrNoArtifact is returned for an artifact that the generator does not
// produce.
var ErrNoArtifact = errors.New("the ArtifactGenerator does not produce the artifact")

// Sources returns the files of a source. It is called only for sources from
// which the artifact copies.
type Sources func(source controllers.ID) (fs.FS, error)

// Generator is an ArtifactGenerator.
type Generator struct {
	name        controllers.ID
	disabled    bool
	sources     map[string]controllers.ID
	pathPattern string
	artifacts   []artifact
	// files counts the files of all artifacts.
	files int64
}

// Produced is an ExternalArtifact that a generator produces.
type Produced struct {
	Name  string
	Files *filetree.Tree
}

// maxArtifacts limits the artifacts of a generator, which a pathPattern can multiply. The limit for the files of a build
// applies to all artifacts together.
const maxArtifacts = 10_000

type artifact struct {
	Name string      `json:"name"`
	Copy []operation `json:"copy"`
}

// operation copies files of a source into the artifact.
type operation struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Exclude  []string `json:"exclude"`
	Strategy string   `json:"strategy"`
}

// Is reports whether an object is an ArtifactGenerator.
func Is(o *unstructured.Unstructured) bool {
	return o.GetKind() == Kind && strings.HasPrefix(o.GetAPIVersion(), Group+"/")
}

// Find renders an ExternalArtifact from the ArtifactGenerators among objects. It
// returns build.ErrNotFound if none of them produces it.
func Find(ctx context.Context, source controllers.ID, objects []*unstructured.Unstructured, sources Sources) (*filetree.Tree, error) {
	for _, o := range objects {
		if !Is(o) || o.GetNamespace() != source.Namespace {
			continue
		}
		g, err := New(o)
		if err != nil {
			return nil, err
		}
		tree, err := g.Artifact(ctx, source.Name, sources)
		if !errors.Is(err, ErrNoArtifact) {
			return tree, err
		}
	}
	return nil, build.ErrNotFound
}

// New reads an ArtifactGenerator.
func New(o *unstructured.Unstructured) (*Generator, error) {
	g := &Generator{
		name: controllers.IDOf(o.Object), sources: map[string]controllers.ID{},
		disabled: strings.EqualFold(o.GetAnnotations()[Group+"/reconcile"], "disabled"),
	}
	var spec struct {
		PathPattern string `json:"pathPattern"`
		Sources     []struct {
			Alias     string `json:"alias"`
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"sources"`
		Artifacts []artifact `json:"artifacts"`
	}
	if err := build.Decode(o.Object["spec"], &spec); err != nil {
		return nil, fmt.Errorf("reading the spec of %s: %w", g.name, err)
	}
	g.pathPattern, g.artifacts = spec.PathPattern, spec.Artifacts
	for _, source := range spec.Sources {
		if _, twice := g.sources[source.Alias]; twice {
			return nil, fmt.Errorf("%s has two sources with the alias %q", g.name, source.Alias)
		}
		if source.Namespace == "" {
			source.Namespace = o.GetNamespace()
		}
		g.sources[source.Alias] = controllers.FluxID(source.Kind, source.Namespace, source.Name)
	}
	return g, nil
}

// Artifact returns the files of the ExternalArtifact with the given name, or
// ErrNoArtifact.
func (g *Generator) Artifact(ctx context.Context, name string, sources Sources) (*filetree.Tree, error) {
	wanted, err := g.artifact(name, sources)
	if err != nil {
		return nil, err
	}
	return g.render(ctx, wanted, sources)
}

// Artifacts returns all ExternalArtifacts, in the order of the spec.
func (g *Generator) Artifacts(ctx context.Context, sources Sources) ([]Produced, error) {
	all, err := g.all(sources)
	if err != nil {
		return nil, err
	}
	var produced []Produced
	names := map[string]bool{}
	for _, a := range all {
		if names[a.Name] {
			return nil, g.twice(a.Name)
		}
		names[a.Name] = true
		tree, err := g.render(ctx, a, sources)
		if err != nil {
			return nil, err
		}
		produced = append(produced, Produced{a.Name, tree})
	}
	return produced, nil
}

func (g *Generator) twice(name string) error {
	return fmt.Errorf("%s has two artifacts with the name %q", g.name, name)
}

// render returns the files of an artifact.
func (g *Generator) render(ctx context.Context, wanted artifact, sources Sources) (*filetree.Tree, error) {
	if g.disabled {
		return nil, fmt.Errorf("the reconciliation of %s is disabled by annotation: the content of its artifacts is unknown", g.name)
	}
	s := &staging{count: &g.files, files: map[string]filetree.File{}, folders: map[string]bool{".": true}}
	for _, o := range wanted.Copy {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := g.copy(s, o, sources); err != nil {
			return nil, fmt.Errorf("%s: copying %s to %s: %w", g.name, o.From, o.To, err)
		}
	}
	ignored := sourceignore.NewDefaultMatcher(nil, nil)
	for name := range s.files {
		if ignored.Match(strings.Split(name, "/"), false) {
			delete(s.files, name)
		}
	}
	return filetree.Of(s.files)
}

// all returns the specifications of all artifacts.
func (g *Generator) all(sources Sources) ([]artifact, error) {
	if g.pathPattern == "" {
		return g.artifacts, nil
	}
	expanded, err := g.expand(sources)
	if err != nil {
		return nil, fmt.Errorf("%s: expanding pathPattern %q: %w", g.name, g.pathPattern, err)
	}
	return expanded, nil
}

// artifact returns the specification of an artifact.
func (g *Generator) artifact(name string, sources Sources) (artifact, error) {
	artifacts, err := g.all(sources)
	if err != nil {
		return artifact{}, err
	}
	var found []artifact
	for _, a := range artifacts {
		if a.Name == name {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return artifact{}, ErrNoArtifact
	case 1:
		return found[0], nil
	default:
		return artifact{}, g.twice(name)
	}
}

// source returns the files of a source and the path in "@alias/path".
func (g *Generator) source(from string, sources Sources) (fs.FS, string, error) {
	alias, name, ok := strings.Cut(strings.TrimPrefix(from, "@"), "/")
	if !ok || !strings.HasPrefix(from, "@") {
		return nil, "", fmt.Errorf("invalid path %q: must have the form @ALIAS/PATH", from)
	}
	source, ok := g.sources[alias]
	if !ok {
		return nil, "", fmt.Errorf("no source has the alias %q", alias)
	}
	tree, err := sources(source)
	return tree, name, err
}
