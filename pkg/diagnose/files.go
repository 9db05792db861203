package diagnose

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// filesShown is the maximum number of files to list.
const filesShown = 3

// file returns the file in the source that defines the object of a failure, or "". Patches may have the same name, so there may be
// several files.
func (s *diagnosis) file(ctx context.Context, sub rules.Subject) string {
	source, ok := sub.Searched()
	if !ok {
		return ""
	}
	return s.fileOf(ctx, sub, source, sub.Failure())
}

// fileOf returns the file in a source that defines the object of a failure, or "".
func (s *diagnosis) fileOf(ctx context.Context, sub rules.Subject, source controllers.ID, f failure.Failure) string {
	found, err := s.cluster.Manifests(ctx, source, s.snapshot.Objects[source], f)
	if err != nil {
		return ""
	}
	var inside, outside []string
	directory := path.Clean("/" + sub.Text("spec.path"))
	for _, m := range found {
		list := &outside
		if within(directory, m.File) {
			list = &inside
		}
		if !slices.Contains(*list, m.File) {
			*list = append(*list, m.File)
		}
	}
	if len(inside) == 0 {
		inside = outside
	}
	return strings.Join(inside[:min(len(inside), filesShown)], " or ")
}

// unapplied returns the HelmReleases in the directory of a Kustomization that do not exist on the cluster.
func unapplied(ctx context.Context, s *diagnosis, sub rules.Subject) []string {
	source, ok := sub.Searched()
	if !ok || sub.Kind.Kind != controllers.Kustomization { // other kinds do not apply a directory
		return nil
	}
	found, err := observe.Releases(ctx, s.cluster, source, s.snapshot.Objects[source])
	if err != nil {
		return nil
	}
	var names []string
	directory := path.Clean("/" + sub.Text("spec.path"))
	for _, m := range found {
		id := controllers.IDOf(m.Object)
		if id.Namespace = cmp.Or(sub.Text("spec.targetNamespace"), id.Namespace, sub.ID().Namespace); !within(directory, m.File) || len(names) == filesShown {
			continue
		}
		if o, err := s.cluster.Flux(ctx, id); err == nil && o == nil && !slices.Contains(names, id.String()) {
			names = append(names, id.String())
		}
	}
	return names
}

// within reports whether a file is in or below a directory. The directory begins with a slash.
func within(directory, file string) bool {
	return directory == "/" || strings.HasPrefix("/"+file, directory+"/")
}

// Searched returns the source whose artifact the diagnosis of an object searches for the file of a rejected object, and false if
// it searches no artifact.
func Searched(k controllers.Kind, o controllers.Object) (controllers.ID, bool) {
	s := rules.NewSubject(k, o, "")
	if found, ok := s.Classify(); k.IsReady(o) || !ok || !found.Live {
		return controllers.ID{}, false
	}
	return s.Searched()
}
