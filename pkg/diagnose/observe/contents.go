package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/helm"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/artifact"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// ErrNoArtifact is returned for a source without an artifact.
var ErrNoArtifact = errors.New("the source has no artifact")

// Artifact returns the files in the artifact of a source. If o does not contain the artifact, the source is read. Artifacts are
// cached, because many failures may have the same source.
func (c *Cluster) Artifact(ctx context.Context, source controllers.ID, o controllers.Object) (fs.FS, error) {
	return c.artifacts.get(source, func() (fs.FS, error) {
		a, ok := artifact.Of(o)
		if !ok { // a survey keeps few fields of healthy objects
			o, err := c.Client.GetKind(ctx, KindOf(source), source.Namespace, source.Name)
			if err != nil {
				return nil, err
			}
			if a, ok = artifact.Of(o); !ok {
				return nil, ErrNoArtifact
			}
		}
		archive, err := artifact.Fetch(ctx, c.Client, a, c.Home)
		if err != nil {
			return nil, err
		}
		return sourcetree.Archive(bytes.NewReader(archive))
	})
}

// Manifests returns the manifests of the object of a failure in the artifact of a source.
func (c *Cluster) Manifests(ctx context.Context, source controllers.ID, o controllers.Object, f failure.Failure) ([]sourcetree.Manifest, error) {
	words, matches := manifestOf(f)
	return find(ctx, c, source, o, words, matches)
}

// Releases returns the manifests of HelmReleases in the artifact of a source.
func Releases(ctx context.Context, c *Cluster, source controllers.ID, o controllers.Object) ([]sourcetree.Manifest, error) {
	return find(ctx, c, source, o, []string{controllers.HelmRelease}, build.IsHelmRelease)
}

func find(
	ctx context.Context, c *Cluster, source controllers.ID, o controllers.Object, words []string, matches func(*unstructured.Unstructured) bool,
) ([]sourcetree.Manifest, error) {
	if c.Recording {
		return c.indexed(ctx, source, matches)
	}
	files, err := c.Artifact(ctx, source, o)
	if err != nil {
		return nil, err
	}
	return sourcetree.Search(ctx, files, words, matches)
}

// manifestOf returns the search terms for the manifest of a failure: any object of an API version that is not served, otherwise
// the object with the kind and name.
func manifestOf(f failure.Failure) (words []string, matches func(*unstructured.Unstructured) bool) {
	if f.Type == failure.NoMatch {
		return []string{f.Named.Kind, f.Version}, func(u *unstructured.Unstructured) bool {
			return u.GetKind() == f.Named.Kind && u.GetAPIVersion() == f.Version
		}
	}
	o := f.Rejected()
	return []string{o.Kind, o.Name}, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == o.Kind && u.GetName() == o.Name && (u.GetNamespace() == "" || o.Namespace == "" || u.GetNamespace() == o.Namespace)
	}
}

// indexed returns the manifests that match in the recorded index of an artifact.
func (c *Cluster) indexed(ctx context.Context, source controllers.ID, matches func(*unstructured.Unstructured) bool) ([]sourcetree.Manifest, error) {
	text, err := c.Client.Raw(ctx, recording.IndexPath(source))
	if err != nil {
		return nil, err
	}
	var index recording.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("reading the index of the artifact of %s: %w", source, err)
	}
	var found []sourcetree.Manifest
	for _, m := range index.Manifests {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": m.APIVersion, "kind": m.Kind, "metadata": map[string]any{"namespace": m.Namespace, "name": m.Name},
		}}
		if matches(u) {
			found = append(found, sourcetree.Manifest{Unstructured: u, File: m.File})
		}
	}
	return found, nil
}

// Served returns the API versions of a kind that the cluster serves.
func (c *Cluster) Served(ctx context.Context, group, kind string) []string {
	resources, err := c.Client.Discovery().NamedInGroup(ctx, group, kind)
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

// Providers returns the names of the Flux objects, other than but, that have applied CRDs of a group, according to the owner
// labels.
func (c *Cluster) Providers(ctx context.Context, but controllers.ID, group string) []string {
	if group == "" {
		return nil
	}
	var names []string
	err := c.Client.Metadata(ctx, kube.CRDs(), kube.Selection{}, func(o controllers.Object) {
		t, ok := controllers.Manager(o)
		if ok && t != but && strings.HasSuffix(controllers.Name(o), "."+group) && !slices.Contains(names, t.String()) {
			names = append(names, t.String())
		}
	})
	if err != nil {
		return nil
	}
	slices.Sort(names)
	return names
}

// Data reads a ConfigMap or Secret.
func (c *Cluster) Data(ctx context.Context, ref controllers.ID) (map[string][]byte, error) {
	o, err := c.Client.Get(ctx, kube.BuiltIn("v1", ref.Kind), ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, build.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return build.DataOf(&unstructured.Unstructured{Object: o})
}

// Release reads the deployed revision of a Helm release.
func (c *Cluster) Release(ctx context.Context, storage, name string) (*helm.Release, error) {
	history, err := helm.Read(ctx, c.Client, storage, name)
	if err != nil {
		return nil, err
	}
	if history == nil || history.Deployed == nil {
		return nil, fmt.Errorf("no deployed revision of release %s/%s in the Helm storage", storage, name)
	}
	return history.Deployed, nil
}
