package record

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/controllers"
)

const (
	// atOnce is the maximum number of parallel requests for single objects, singleMax the maximum
	// number of single objects of a kind.
	atOnce, singleMax = 16, 1000
	// mostRelatives is the maximum number of kinds in a group of custom resources to list, as in a
	// tree.
	mostRelatives = 16
)

// builtIn lists the Kubernetes kinds that commands list completely, with the fields that no command reads.
var builtIn = []struct {
	apiVersion, kind string
	without          []string
}{
	{"v1", "Namespace", []string{"metadata.managedFields"}},
	{"apiextensions.k8s.io/v1", "CustomResourceDefinition", []string{"metadata.managedFields", "spec.versions.schema", "spec.conversion"}},
	{"v1", "Event", []string{"metadata.managedFields"}},
	{"apps/v1", "Deployment", []string{"metadata.managedFields"}},
	{"apps/v1", "ReplicaSet", []string{"metadata.managedFields", "spec.template"}},
	{"apps/v1", "StatefulSet", []string{"metadata.managedFields"}},
	{"apps/v1", "DaemonSet", []string{"metadata.managedFields"}},
	{"batch/v1", "Job", []string{"metadata.managedFields"}},
	{"batch/v1", "CronJob", []string{"metadata.managedFields"}},
	{"v1", "PersistentVolumeClaim", []string{"metadata.managedFields"}},
	{"v1", "Pod", []string{"metadata.managedFields"}},
}

// builtIn records namespaces, CRDs, events, workloads, and the leases of the controllers.
func (s *run) builtIn(ctx context.Context) error {
	for _, b := range builtIn {
		r := kube.BuiltIn(b.apiVersion, b.kind)
		visit := func(controllers.Object) {}
		if r.Resource == "pods" {
			visit = s.wantLogs
		}
		if err := s.all(ctx, r, b.without, visit); err != nil {
			return err
		}
	}
	leases := kube.BuiltIn("coordination.k8s.io/v1", "Lease")
	s.whole[leases.GroupResource()] = true
	line := listOf(leases, s.Home)
	version, err := s.Client.List(ctx, leases, kube.Selection{Namespace: s.Home, Without: []string{"metadata.managedFields"}}, func(o controllers.Object) error {
		return s.out.Write(recording.Line{Object: o})
	})
	return s.end(line, version, err)
}

// relatives records all custom resources in the groups of applied ones, if the group has few
// kinds: operators create custom resources for custom resources.
func (s *run) relatives(ctx context.Context) error {
	families := map[schema.GroupVersion]bool{}
	for r := range s.applied {
		if custom(r.Group) && !r.ClusterScoped {
			families[r.GroupVersion()] = true
		}
	}
	for _, gv := range slices.SortedFunc(maps.Keys(families), func(a, b schema.GroupVersion) int { return cmp.Compare(a.String(), b.String()) }) {
		var kinds []kube.Resource
		for gvk, r := range s.served {
			if gvk.GroupVersion() == gv {
				kinds = append(kinds, r)
			}
		}
		if len(kinds) > mostRelatives {
			continue
		}
		slices.SortFunc(kinds, byName)
		for _, r := range kinds {
			if r.ClusterScoped || s.whole[r.GroupResource()] {
				continue
			}
			if err := s.all(ctx, r, []string{"metadata.managedFields", "spec"}, func(controllers.Object) {}); err != nil {
				return err
			}
		}
	}
	return nil
}

// custom reports whether a group contains custom resources of other projects.
func custom(group string) bool {
	return !controllers.IsBuiltInGroup(group) && !slices.Contains(controllers.Groups(), group)
}

func byName(a, b kube.Resource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Version, b.Version))
}

// inventories records the other objects in inventories: for each kind, the objects with owner
// labels, and single objects.
func (s *run) inventories(ctx context.Context) error {
	s.add(secrets(), s.Home, "")
	for _, r := range slices.SortedFunc(maps.Keys(s.applied), byName) {
		if s.whole[r.GroupResource()] {
			continue
		}
		s.Reading(r.Resource)
		for _, namespace := range s.scopes(r) {
			if err := s.part(ctx, r, namespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// part records the applied objects of a resource in a namespace, or in all for "".
func (s *run) part(ctx context.Context, r kube.Resource, namespace string) error {
	line := listOf(r, namespace)
	line.Part = true
	selection := kube.Selection{Namespace: namespace, Without: []string{"metadata.managedFields"}}
	if confidential := slices.Contains([]string{"secrets", "configmaps"}, r.Resource) && r.Group == ""; confidential {
		line.MetadataOnly = true
		selection.OnlyMetadata, selection.Without = true, []string{"data", "stringData", "binaryData"}
	}
	line.Selectors = selectors(r)
	seen := map[string]bool{}
	each := func(o controllers.Object) error {
		id := controllers.Namespace(o) + "/" + controllers.Name(o)
		if seen[id] {
			return nil
		}
		seen[id] = true
		return s.write(r, o)
	}
	var version string
	var err error
	for _, selection.Labels = range line.Selectors {
		if version, err = s.Client.List(ctx, r, selection, each); err != nil {
			return s.end(line, "", err)
		}
	}
	selection.Labels = ""
	line.Absent, err = s.singles(ctx, r, selection, seen, each)
	return s.end(line, version, err)
}

// selectors returns the label selectors of the recorded objects of a resource: the Flux owner
// labels, and the labels of the Helm release storage.
func selectors(r kube.Resource) []string {
	var all []string
	for _, k := range controllers.Known {
		if label, _ := controllers.OwnerLabels(k); k.Applies() && len(k.Inventory) > 0 && !slices.Contains(all, label) {
			all = append(all, label)
		}
	}
	if r == secrets() {
		all = append(all, "owner=helm")
	}
	return all
}

// singles reads the applied objects that have not been seen, and returns the IDs of missing objects.
func (s *run) singles(ctx context.Context, r kube.Resource, selection kube.Selection, seen map[string]bool, each func(controllers.Object) error) (absent []string, err error) {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(s.applied[r])) {
		namespace, name, _ := strings.Cut(id, "/")
		if !seen[id] && name != "" && (selection.Namespace == "" || namespace == selection.Namespace) {
			ids = append(ids, id)
		}
	}
	if len(ids) > singleMax {
		s.out.Unknown(fmt.Sprintf("%s: only the first %d inventory objects without owner labels were recorded", r.Resource, singleMax))
		ids = ids[:singleMax]
	}
	found := make([]controllers.Object, len(ids))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, id := range ids {
		g.Go(func() error {
			one := selection
			one.Namespace, one.Name, _ = strings.Cut(id, "/")
			_, err := s.Client.List(gctx, r, one, func(o controllers.Object) error {
				found[i] = o
				return nil
			})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, o := range found {
		if o == nil {
			absent = append(absent, ids[i])
		} else if err := each(o); err != nil {
			return nil, err
		}
	}
	return absent, nil
}
