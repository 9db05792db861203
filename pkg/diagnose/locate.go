package diagnose

import (
	"context"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/artifact"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// locate returns the finding of a root with what only requests tell: the file of
// the object that is rejected, and who provides an API that is not served. Where
// nothing is found, it is the finding as it was.
func (s *snapshot) locate(ctx context.Context, root Finding, sub subject) Finding {
	found, ok := recognise(sub)
	if !ok || !found.located || found.Code != root.Code {
		return root
	}
	sub.failure = failure.Parse(sub.attempt().Message)
	if sub.failure.Type == failure.NoMatch {
		group, _ := groupVersion(sub.failure)
		sub.served = s.served(ctx, group, sub.failure.Named.Kind)
		sub.providers = s.providers(targetOf(sub.kind, sub.object), group)
	}
	sub.file = s.file(ctx, sub)
	found, _ = recognise(sub)
	root.Message = found.Message
	if kept := len(root.Remedies) - 1; kept >= 0 { // the last one may be of judge
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

// served returns the API versions in which the cluster serves a kind.
func (s *snapshot) served(ctx context.Context, group, kind string) []string {
	resources, err := s.Client.NamedInGroup(ctx, group, kind)
	if err != nil {
		return nil // the kind is not served, or that cannot be told
	}
	var versions []string
	for _, r := range resources {
		if r.Kind == kind {
			versions = append(versions, r.GroupVersion().String())
		}
	}
	return versions
}

// providers returns the objects of Flux that apply a CRD of a group.
func (s *snapshot) providers(but controllers.Target, group string) []string {
	var names []string
	for t, o := range s.objects {
		if t == but || group == "" {
			continue
		}
		if slices.ContainsFunc(s.kindOf(t).Managed(o), func(m controllers.Target) bool {
			return m.Kind == "CustomResourceDefinition" && strings.HasSuffix(m.Name, "."+group)
		}) {
			names = append(names, t.String())
		}
	}
	slices.Sort(names)
	return names[:min(len(names), mostShown)]
}

// file returns the file of the source that defines the object of a failure, ""
// where it is not found. A patch may have the same name, so that it may be
// several.
func (s *snapshot) file(ctx context.Context, sub subject) string {
	sources := sub.kind.SourceOf(sub.object)
	f := sub.failure
	if len(sources) != 1 || f.In(failure.Install, failure.Upgrade) {
		return ""
	}
	a, ok := artifact.Of(s.objects[key(sources[0])])
	if !ok {
		return ""
	}
	archive, err := artifact.Fetch(ctx, s.Client, a, s.Home)
	if err != nil {
		return ""
	}
	files, err := build.Archive(strings.NewReader(string(archive)))
	if err != nil {
		return ""
	}
	words, matches := sought(f)
	found, err := build.Search(ctx, files, words, matches)
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

// sought is how the manifest of the object of a failure is found: every one of a
// version that is not served, else the one of that kind and name.
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
