// Package upstream reads sources where they are stored: on Git servers, in registries and in source-controller. It also
// finds the credentials and keys for them.
package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// StoredSources fetches and caches the artifacts that source-controller
// stores.
type StoredSources struct {
	Client *kube.Client
	Home   string
	known  map[controllers.ID]StoredSource
}

// StoredSource contains the files and the revision of an artifact.
type StoredSource struct {
	Tree     fs.FS
	Revision string
}

// Tree returns the files in the artifact of a source.
func (s *StoredSources) Tree(ctx context.Context, source controllers.ID) (fs.FS, error) {
	stored, err := s.Get(ctx, source)
	return stored.Tree, err
}

// Get returns the artifact of a source and caches it.
func (s *StoredSources) Get(ctx context.Context, source controllers.ID) (StoredSource, error) {
	if known, ok := s.known[source]; ok {
		return known, nil
	}
	stored, err := s.fetch(ctx, source)
	var gone *artifact.GoneError
	if errors.As(err, &gone) { // source-controller replaced the artifact between the two requests
		stored, err = s.fetch(ctx, source)
	}
	if err != nil {
		return stored, err
	}
	if s.known == nil {
		s.known = map[controllers.ID]StoredSource{}
	}
	s.known[source] = stored
	return stored, nil
}

// Object reads the object of a source from the cluster.
func (s *StoredSources) Object(ctx context.Context, source controllers.ID) (objref.Target, error) {
	kind, ok := controllers.FindKind(source.Kind)
	if !ok {
		return objref.Target{}, fmt.Errorf("unknown source kind %s", source)
	}
	t := objref.Target{Kind: kind, Namespace: source.Namespace, Name: source.Name}
	return t, t.Read(ctx, s.Client)
}

func (s *StoredSources) fetch(ctx context.Context, source controllers.ID) (StoredSource, error) {
	t, err := s.Object(ctx, source)
	if err != nil {
		return StoredSource{}, err
	}
	a, ok := artifact.Of(t.Object)
	if !ok {
		return StoredSource{}, fmt.Errorf("%s has no artifact yet: %s", source, t.Kind.Ready(t.Object).Message)
	}
	archive, err := artifact.Fetch(ctx, s.Client, a, s.Home)
	if err != nil {
		return StoredSource{}, err
	}
	tree, err := sourcetree.Archive(bytes.NewReader(archive))
	if err != nil {
		return StoredSource{}, fmt.Errorf("unpacking the artifact of %s: %w", source, err)
	}
	return StoredSource{tree, a.Revision}, nil
}
