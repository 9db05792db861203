package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// mostIndexed is the maximum number of artifacts whose index is recorded. indexMax is the maximum
	// size of an index, and nameMax of an entry: the API server rejects longer names.
	mostIndexed = 50
	indexMax    = 4 << 20
	nameMax     = 8 << 10
)

// errIndexSize is returned for an artifact with too many manifests.
var errIndexSize = errors.New("too many manifests for a recording")

// indexes records the manifest names in the artifacts that the diagnosis searches for rejected
// objects. It does not record their contents.
func (s *run) indexes(ctx context.Context) error {
	targets := slices.SortedFunc(maps.Keys(s.searched), func(a, b controllers.ID) int { return cmp.Compare(a.String(), b.String()) })
	for i, source := range targets {
		a, ok := s.artifacts[source]
		if !ok {
			continue // without an artifact, the diagnosis of the live cluster does not show the file, either
		}
		s.Reading("the artifact of " + source.String())
		body, err := []byte(nil), fmt.Errorf("only %d artifacts are indexed", mostIndexed)
		if i < mostIndexed {
			body, err = s.index(ctx, a)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			what := "manifests in the artifact of " + source.String()
			s.out.Unknown(what + ": " + s.masker.Text(err.Error()))
			s.Missed(what, err)
			continue
		}
		if err := s.out.Write(recording.Line{Document: &recording.Document{Path: recording.IndexPath(source), Body: body}}); err != nil {
			return err
		}
	}
	return nil
}

// index returns the index of an artifact as JSON.
func (s *run) index(ctx context.Context, a artifact.Artifact) ([]byte, error) {
	archive, err := artifact.Fetch(ctx, s.Client, a, s.Home)
	if err != nil {
		return nil, err
	}
	files, err := sourcetree.Archive(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	found, err := sourcetree.Search(ctx, files, nil, func(*unstructured.Unstructured) bool { return true })
	if err != nil {
		return nil, err
	}
	index := recording.Index{Manifests: []recording.Manifest{}}
	for _, m := range found {
		one := recording.Manifest{APIVersion: m.GetAPIVersion(), Kind: m.GetKind(), Namespace: m.GetNamespace(), Name: m.GetName(), File: m.File}
		if len(one.APIVersion)+len(one.Kind)+len(one.Namespace)+len(one.Name)+len(one.File) <= nameMax {
			index.Manifests = append(index.Manifests, one)
		}
	}
	body, err := json.Marshal(index)
	if err == nil && len(body) > indexMax {
		err = errIndexSize
	}
	return body, err
}
