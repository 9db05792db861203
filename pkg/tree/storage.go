package tree

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/helm"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// storage is the Secret of a Helm release, and the namespace of the release.
type storage struct{ namespace, name, target string }

// storageOf returns the release storage of a HelmRelease without an inventory:
// helm-controller records inventories since Flux 2.8. The Secret of a release
// in another cluster cannot be read here.
func storageOf(k controllers.Kind, o controllers.Object) *storage {
	_, inventory := controllers.Path{"status.inventory"}.Lookup(o)
	field := func(paths ...string) string { return controllers.Path(paths).String(o) }
	version := field("status.history[0].version", "status.lastReleaseRevision")
	if !k.Release || inventory || controllers.IsRemote(o) || version == "" || version == "0" {
		return nil
	}
	name := field("status.history[0].name")
	if name == "" {
		name = controllers.ReleaseName(o)
	}
	return &storage{
		namespace: field("status.storageNamespace", "spec.storageNamespace", "metadata.namespace"),
		name:      "sh.helm.release.v1." + name + ".v" + version,
		target:    field("status.history[0].namespace", "spec.targetNamespace", "metadata.namespace"),
	}
}

// restore reads missing HelmRelease inventories from the release storage, with one request each.
func (b *builder) restore(ctx context.Context, nodes []*Node) error {
	found := make([]fluxObject, len(nodes))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, node := range nodes {
		f, ok := b.flux[node.Object]
		if !ok || f.stored == nil || b.expanded[node.Object] {
			continue
		}
		group.Go(func() error {
			found[i] = b.cluster.recall(groupCtx, f, &b.gaps)
			return groupCtx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("reading releases: %w", context.Cause(ctx))
	}
	for i, node := range nodes {
		if found[i].stored != nil {
			b.flux[node.Object] = found[i]
		}
	}
	return nil
}

// recall sets the inventory of a HelmRelease from the Secret of its release.
func (c *cluster) recall(ctx context.Context, f fluxObject, g *gaps) fluxObject {
	secrets := resourceOf(secret, "")
	o, err := c.client.Get(ctx, secrets, f.stored.namespace, f.stored.name)
	switch {
	case apierrors.IsNotFound(err):
		return f // uninstalled
	case err != nil:
		g.add(secrets, f.stored.namespace, err)
		return f
	}
	stored, err := helm.Of(o)
	if err == nil {
		f.inventory, err = c.released(ctx, stored.Manifest, f.stored.target)
		f.restored = err == nil
	}
	if err != nil {
		f.broken = fmt.Errorf("reading the release of %s in Secret %s/%s: %w", f.object, f.stored.namespace, f.stored.name, err)
	}
	return f
}

// manifest is the required part of a manifest.
type manifest struct {
	APIVersion string
	Kind       string
	Metadata   struct{ Namespace, Name string }
	Items      []manifest
}

// released returns the objects of a release. The namespace of a namespaced
// object defaults to the namespace of the release.
func (c *cluster) released(ctx context.Context, text, namespace string) ([]controllers.VersionedID, error) {
	var all []manifest
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader([]byte(text)))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var m manifest
		if err == nil {
			err = budget.Unmarshal("release manifest", document, &m)
		}
		if err != nil {
			return nil, err
		}
		all = append(append(all, m), m.Items...)
	}
	var entries []controllers.VersionedID
	scoped := map[schema.GroupKind]bool{}
	for _, m := range all {
		gvk := schema.FromAPIVersionAndKind(m.APIVersion, m.Kind)
		if m.Kind == "" || m.Metadata.Name == "" {
			continue // a comment, or a list
		}
		e := controllers.VersionedID{ID: controllers.NewID(gvk.GroupKind(), m.Metadata.Namespace, m.Metadata.Name), Version: gvk.Version}
		if e.ID.Namespace == "" && !c.clusterScoped(ctx, gvk, scoped) {
			e.ID.Namespace = namespace
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// clusterScoped reports whether a kind is cluster-scoped. For custom resources it
// queries the API server, and assumes that they are namespaced if discovery
// fails.
func (c *cluster) clusterScoped(ctx context.Context, gvk schema.GroupVersionKind, known map[schema.GroupKind]bool) bool {
	r := kube.ResourceFor(gvk)
	if r.ClusterScoped || !custom(gvk.GroupKind()) {
		return r.ClusterScoped
	}
	is, asked := known[gvk.GroupKind()]
	if !asked {
		served, err := c.lookUp(ctx, r)
		is = err == nil && served.ClusterScoped
		known[gvk.GroupKind()] = is
	}
	return is
}
