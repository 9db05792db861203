package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/policy"
	"github.com/fluxkit/flux/pkg/tree"
)

// atOnce is the maximum number of parallel requests.
const atOnce = 16

// hookAnnotation marks the objects that Helm creates for hooks.
const hookAnnotation = "helm.sh/hook"

// object is an object that Flux has applied.
type object struct {
	id       controllers.VersionedID
	resource kube.Resource
	uid      string
	created  time.Time
	owners   []controllers.ID
	hook     bool
	// kept is the annotation that keeps the object when its first owner no longer applies it, or "".
	kept string
}

// keptBy returns the annotation that keeps an object when an owner of the kind no longer applies it, or "".
func keptBy(k controllers.Kind, o controllers.Object) string {
	settings := []controllers.Setting{k.Keep}
	if k.Group == policy.Group {
		settings = append(settings, controllers.Setting{Key: policy.Group + "/reconcile", Value: "disabled"})
	}
	for _, s := range settings {
		if controllers.HasSetting(o, s.Key, s.Value) {
			return s.String()
		}
	}
	return ""
}

// lister lists the metadata of the objects with owner labels.
type lister struct {
	client  *kube.Client
	options Options
	labels  []string

	mu   sync.Mutex
	gaps []tree.Gap
}

// ownerLabels returns the owner name label of each kind that applies objects and that the cluster may serve.
func ownerLabels(resources []kube.Resource) []string {
	operator := slices.ContainsFunc(resources, func(r kube.Resource) bool { return r.Group == controllers.OperatorGroup })
	var all []string
	for _, k := range controllers.Known {
		if name, _ := controllers.OwnerLabels(k); k.Applies() && (operator || k.Group != controllers.OperatorGroup) {
			all = append(all, name)
		}
	}
	return all
}

// list lists the objects of resources that Flux has applied, without duplicates. Resources that cannot be listed become
// gaps.
func (l *lister) list(ctx context.Context, resources []kube.Resource) ([]object, error) {
	if l.options.Namespace != "" {
		resources = slices.DeleteFunc(slices.Clone(resources), func(r kube.Resource) bool { return r.ClusterScoped })
	}
	found := make([][]object, len(resources))
	done := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, r := range resources {
		g.Go(func() error {
			var err error
			for _, label := range l.labels {
				if err == nil {
					err = l.listLabeled(gctx, r, label, &found[i])
				}
			}
			var response apierrors.APIStatus
			switch {
			case err == nil, apierrors.IsNotFound(err): // the CRD was deleted in the meantime
			case gctx.Err() != nil || !errors.As(err, &response):
				return fmt.Errorf("listing %s: %w", r.GroupResource(), err)
			default:
				l.miss(r, err)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			done++
			l.options.Progress(done, len(resources))
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	seen := map[string]bool{} // two groups serve the same Events
	return slices.DeleteFunc(slices.Concat(found...), func(o object) bool {
		twice := seen[o.uid]
		seen[o.uid] = true
		return twice
	}), nil
}

func (l *lister) miss(r kube.Resource, err error) {
	gap := tree.Gap{Resource: r.GroupResource().String(), Err: err}
	if l.options.Namespace != "" {
		gap.Namespaces = []string{l.options.Namespace}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaps = append(l.gaps, gap)
}

func (l *lister) listLabeled(ctx context.Context, r kube.Resource, label string, found *[]object) error {
	selection := kube.Selection{
		Namespace: l.options.Namespace, Labels: strings.TrimSuffix(label+","+l.options.Labels, ","), OnlyMetadata: true, Quiet: true,
		Without: []string{"spec", "status", "data", "binaryData", "stringData", "metadata.managedFields.fieldsV1"},
	}
	_, err := l.client.List(ctx, r, selection, func(o controllers.Object) error {
		if isApplied(o) {
			*found = append(*found, objectOf(r, o))
		}
		return nil
	})
	return err
}

// isApplied reports whether Flux has applied an object with owner labels. Other controllers copy the labels, for example from
// Services to Endpoints, and objects with owners are deleted with them.
func isApplied(o controllers.Object) bool {
	_, owned := controllers.Path{"metadata.ownerReferences"}.Lookup(o)
	deleting := controllers.Path{"metadata.deletionTimestamp"}.String(o) != ""
	return !owned && !deleting && len(controllers.Owners(o)) > 0 && controllers.ManagedByFlux(o)
}

func objectOf(r kube.Resource, o controllers.Object) object {
	created, _ := time.Parse(time.RFC3339, controllers.Path{"metadata.creationTimestamp"}.String(o)) // the API server sets it
	id := controllers.VersionedID{ID: controllers.ID{Group: r.Group, Kind: r.Kind, Namespace: controllers.Namespace(o), Name: controllers.Name(o)}, Version: r.Version}
	owners := controllers.Owners(o)
	k, _ := owners[0].Flux()
	return object{
		id: id, resource: r, uid: controllers.Path{"metadata.uid"}.String(o), created: created, owners: owners,
		hook: controllers.Annotation(o, hookAnnotation) != "", kept: keptBy(k, o),
	}
}

// confirm returns the orphans that still exist.
func (l *lister) confirm(ctx context.Context, orphans []Orphan) ([]Orphan, error) {
	var resources []kube.Resource
	for _, o := range orphans {
		if !slices.Contains(resources, o.resource) {
			resources = append(resources, o.resource)
		}
	}
	l.options.Progress = func(int, int) {}
	objects, err := l.list(ctx, resources)
	if err != nil {
		return nil, err
	}
	exists := map[string]bool{}
	for _, o := range objects {
		exists[o.uid] = true
	}
	return slices.DeleteFunc(orphans, func(o Orphan) bool { return !exists[o.uid] }), nil
}
