package diagnose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// contents reads the contents of sources and of the release storage of Helm: the archive of each
// source once, and the desired state of an applier.
type contents struct {
	Doctor
	*snapshot
	files cache[controllers.ID, fs.FS]
}

// locate adds details to a root that need further requests: the file of a
// rejected object, and the provider of an API that is not served. If it finds
// nothing, it returns the root unchanged.
func (s *contents) locate(ctx context.Context, root Finding, sub subject) Finding {
	found, ok := recognize(sub)
	if !ok || !found.located || found.Code != root.Code {
		return root
	}
	sub.failure = failure.Parse(sub.attempt().Message)
	if sub.failure.Type == failure.NoMatch {
		group, _ := groupVersion(sub.failure)
		sub.served = s.served(ctx, group, sub.failure.Named.Kind)
		sub.providers = s.providers(ctx, sub.id(), group)
	}
	sub.file = s.file(ctx, sub)
	found, _ = recognize(sub)
	root.Message = found.Message
	if kept := len(root.Remedies) - 1; kept >= 0 { // the last one may come from judge
		root.Remedies = append(found.Remedies[:len(found.Remedies)-1], root.Remedies[kept])
	}
	return root
}

func groupVersion(f failure.Failure) (group, version string) {
	if group, version, ok := strings.Cut(f.Version, "/"); ok {
		return group, version
	}
	return f.Named.Group, f.Version
}

// served returns the API versions of a kind that the cluster serves.
func (s *contents) served(ctx context.Context, group, kind string) []string {
	resources, err := s.Client.Discovery().NamedInGroup(ctx, group, kind)
	if err != nil {
		return nil // the kind is not served, or discovery has failed
	}
	var versions []string
	for _, r := range resources {
		if r.Kind == kind {
			versions = append(versions, r.GroupVersion().String())
		}
	}
	return versions
}

// providers returns the Flux objects that have applied CRDs of a group,
// according to the owner labels.
func (s *contents) providers(ctx context.Context, but controllers.ID, group string) []string {
	if group == "" {
		return nil
	}
	var names []string
	crds := resource(schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}, "CustomResourceDefinition")
	err := s.Client.Metadata(ctx, crds, kube.Selection{}, func(o controllers.Object) {
		t, ok := controllers.Manager(o)
		if ok && t != but && strings.HasSuffix(controllers.Name(o), "."+group) && !slices.Contains(names, t.String()) {
			names = append(names, t.String())
		}
	})
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return names[:min(len(names), mostShown)]
}

// file returns the file in the source that defines the object of a failure, or
// "". Patches may have the same name, so there may be several files.
func (s *contents) file(ctx context.Context, sub subject) string {
	source, ok := sub.searched()
	if !ok {
		return ""
	}
	found, err := s.manifests(ctx, source, sub.failure)
	if err != nil {
		return ""
	}
	var inside, outside []string
	folder := path.Clean("/" + sub.text("spec.path"))
	for _, m := range found {
		list := &outside
		if folder == "/" || strings.HasPrefix("/"+m.File, folder+"/") {
			list = &inside
		}
		if !slices.Contains(*list, m.File) {
			*list = append(*list, m.File)
		}
	}
	if len(inside) == 0 {
		inside = outside
	}
	return strings.Join(inside[:min(len(inside), mostShown)], " or ")
}

// searched returns the source that defines the object of a failure, false if the failure is not about
// an object of a source.
func (s subject) searched() (controllers.ID, bool) {
	sources := s.kind.SourceOf(s.object)
	if len(sources) != 1 || s.failure.In(failure.Install, failure.Upgrade) {
		return controllers.ID{}, false
	}
	return sources[0], true
}

// Searched returns the source in whose artifact the diagnosis of an object looks for the file of a
// rejected object, false if it does not.
func Searched(k controllers.Kind, o controllers.Object) (controllers.ID, bool) {
	sub := newSubject(k, o)
	if found, ok := recognize(sub); k.IsReady(o) || !ok || !found.located {
		return controllers.ID{}, false
	}
	sub.failure = failure.Parse(sub.attempt().Message)
	return sub.searched()
}

// manifests returns the manifests of the object of a failure in the artifact of a source.
func (s *contents) manifests(ctx context.Context, source controllers.ID, f failure.Failure) ([]build.Manifest, error) {
	words, matches := sought(f)
	if s.Recording {
		return s.indexed(ctx, source, matches)
	}
	files, err := s.artifact(ctx, source)
	if err != nil {
		return nil, err
	}
	return build.Search(ctx, files, words, matches)
}

// indexed returns the manifests that match in the recorded index of an artifact.
func (s *contents) indexed(ctx context.Context, source controllers.ID, matches func(*unstructured.Unstructured) bool) ([]build.Manifest, error) {
	text, err := s.Client.Raw(ctx, recording.IndexPath(source))
	if err != nil {
		return nil, err
	}
	var index recording.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("reading the index of the artifact of %s: %w", source, err)
	}
	var found []build.Manifest
	for _, m := range index.Manifests {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": m.APIVersion, "kind": m.Kind, "metadata": map[string]any{"namespace": m.Namespace, "name": m.Name},
		}}
		if matches(u) {
			found = append(found, build.Manifest{Unstructured: u, File: m.File})
		}
	}
	return found, nil
}

// errNoArtifact is returned for a source without an artifact.
var errNoArtifact = errors.New("the source has no artifact")

// artifact returns the files in the artifact of a source. Many failures may
// have the same source.
func (s *contents) artifact(ctx context.Context, source controllers.ID) (fs.FS, error) {
	return s.files.get(source, func() (fs.FS, error) {
		a, ok := artifact.Of(s.objects[source])
		if !ok { // a survey reduces healthy objects
			o, err := s.Client.GetKind(ctx, kindOf(source), source.Namespace, source.Name)
			if err != nil {
				return nil, err
			}
			if a, ok = artifact.Of(o); !ok {
				return nil, errNoArtifact
			}
		}
		archive, err := artifact.Fetch(ctx, s.Client, a, s.Home)
		if err != nil {
			return nil, fmt.Errorf("fetching the artifact of %s: %w", source, err)
		}
		return build.Archive(bytes.NewReader(archive))
	})
}

// sought returns how to find the manifest of a failure: any object of an API
// version that is not served, otherwise the object with the kind and name.
func sought(f failure.Failure) (words []string, matches func(*unstructured.Unstructured) bool) {
	if f.Type == failure.NoMatch {
		return []string{f.Named.Kind, f.Version}, func(u *unstructured.Unstructured) bool {
			return u.GetKind() == f.Named.Kind && u.GetAPIVersion() == f.Version
		}
	}
	o := f.Object
	if o.Kind == "" || o.Name == "" {
		o = f.Named
	}
	return []string{o.Kind, o.Name}, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == o.Kind && u.GetName() == o.Name && (u.GetNamespace() == "" || o.Namespace == "" || u.GetNamespace() == o.Namespace)
	}
}
