package inventory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// skipJobs ignores missing Jobs: without the desired state, it is unknown whether they expired.
func (k *check) skipJobs() {
	for _, t := range k.inventory.Objects {
		if k.inventory.Absent[t] && t.Kind == "Job" {
			k.result.Unknown = append(k.result.Unknown, t.String()+" does not exist: it expired after it finished, or it was deleted")
			delete(k.inventory.Absent, t)
		}
	}
}

// findMissing adds the missing objects as one problem, and the namespaces that cannot contain them.
func (k *check) findMissing(ctx context.Context) {
	missing := slices.DeleteFunc(slices.Clone(k.inventory.Objects), func(t controllers.ID) bool {
		return !k.inventory.Absent[t] || k.desired.expires(t) || k.isDeleting(t.Namespace)
	})
	missing = k.separateNamespaces(ctx, missing)
	if len(missing) == 0 {
		return
	}
	// A kind that is no longer served is the cause, even if other objects are missing.
	slices.SortStableFunc(missing, func(a, b controllers.ID) int { return cmp.Compare(k.rank(a), k.rank(b)) })
	f := deleted(missing[0], k.subject, k.checker.Now)
	if k.inventory.Unserved[missing[0]] {
		f = k.unserved(missing[0])
	}
	for _, t := range missing[1:min(len(missing), objectsShown)] {
		f.Details = append(f.Details, t.String()+" is also missing")
	}
	f.Details = append(f.Details, andMore(len(missing)-objectsShown)...)
	summary := fmt.Sprintf("%d of %s in its inventory missing", len(missing), output.Amount(len(k.inventory.Objects), "object"))
	k.result.Problems = append(k.result.Problems, Problem{summary, f})
}

// isDeleting reports whether a namespace of the inventory is being deleted, with all objects in it.
func (k *check) isDeleting(namespace string) bool {
	o := k.inventory.Live[namespaceID(namespace)]
	_, deleting := rules.DeletedAt(o)
	return namespace != "" && deleting
}

// separateNamespaces adds the namespaces outside of the inventory that are missing or being deleted, and returns the missing
// objects of the other namespaces.
func (k *check) separateNamespaces(ctx context.Context, missing []controllers.ID) (rest []controllers.ID) {
	found := map[string]bool{}
	for _, t := range missing {
		ns := namespaceID(t.Namespace)
		known := t.Namespace == "" || k.inventory.Live[ns] != nil || k.inventory.Absent[ns]
		unavailable, read := found[t.Namespace]
		if !known && !read && len(found) < objectsShown {
			f, ok, err := k.checker.namespace(ctx, t, k.subject)
			if err != nil {
				k.unknown("%s", observe.Unread(ns.String(), err))
			}
			if ok {
				k.result.Problems = append(k.result.Problems, Problem{"an object in its inventory is missing", f})
			}
			found[t.Namespace], unavailable = ok, ok
		}
		if !unavailable {
			rest = append(rest, t)
		}
	}
	return rest
}

func namespaceID(name string) controllers.ID { return controllers.ID{Kind: "Namespace", Name: name} }

// readNamespace returns a namespace, or nil if it does not exist.
func readNamespace(ctx context.Context, c *observe.Cluster, name string) (controllers.Object, error) {
	return c.Object(ctx, controllers.VersionedID{ID: namespaceID(name), Version: "v1"})
}

// ExplainNamespace adds the reason why the deletion of a namespace is blocked.
func ExplainNamespace(ctx context.Context, c *observe.Cluster, f *rules.Finding, name string) {
	if o, err := readNamespace(ctx, c, name); err == nil && o != nil {
		addConditions(f, o)
	}
}

func addConditions(f *rules.Finding, namespace controllers.Object) {
	details, fixes := rules.NamespaceConditions(namespace)
	f.Details, f.Fixes = append(f.Details, details...), append(fixes, f.Fixes...)
}

// namespace returns the finding for a missing object whose namespace is missing or being deleted. The namespace of the applier
// exists as long as the applier.
func (c *Checker) namespace(ctx context.Context, t controllers.ID, s rules.Subject) (f rules.Finding, unavailable bool, err error) {
	if t.Namespace == "" || t.Namespace == s.ID().Namespace {
		return f, false, nil
	}
	ns := namespaceID(t.Namespace)
	o, err := readNamespace(ctx, c.Cluster, t.Namespace)
	if err != nil {
		return f, false, err
	}
	if o != nil {
		f, unavailable = c.Deletion(ns, o)
		addConditions(&f, o)
		f.Details = append([]string{"it contained " + t.String() + " of " + s.String()}, f.Details...)
		return f, unavailable, nil
	}
	return rules.Finding{
		Object: t, Code: "namespace-missing", Message: fmt.Sprintf("it does not exist because namespace %s does not exist", t.Namespace),
		Fixes: []string{fmt.Sprintf("create Namespace/%s in the source, or remove the objects in it", t.Namespace), s.Command("reconcile")},
	}, true, nil
}

// Missing returns the finding for an object of an inventory that does not exist, and what could not be read.
func (c *Checker) Missing(ctx context.Context, t controllers.ID, s rules.Subject) (rules.Finding, []string) {
	f, unavailable, err := c.namespace(ctx, t, s)
	switch {
	case unavailable:
		return f, nil
	case err != nil:
		return deleted(t, s, c.Now), []string{observe.Unread("Namespace/"+t.Namespace, err)}
	}
	return deleted(t, s, c.Now), nil
}

// rank returns 0 for missing objects whose kind is not served, and 1 for others. A missing CRD of the same inventory is applied
// before its objects.
func (k *check) rank(t controllers.ID) int {
	if k.inventory.Unserved[t] && crdOf(t, k.subject.Object) == "" {
		return 0
	}
	return 1
}

// crdOf returns the name of the CRD of an object in the inventory of an applier, or "". The plural in the name is a guess,
// because the cluster does not serve the kind.
func crdOf(t controllers.ID, applier controllers.Object) string {
	guess := kube.ResourceFor(t.GroupKind().WithVersion("")).Resource
	for _, id := range controllers.Managed(applier) {
		plural, group, _ := strings.Cut(id.Name, ".")
		if id.IsCRD() && group == t.Group && (plural == guess || strings.HasPrefix(plural, strings.ToLower(t.Kind))) {
			return id.Name
		}
	}
	return ""
}

// unserved returns the finding for a missing object whose kind the cluster does not serve.
func (k *check) unserved(t controllers.ID) rules.Finding {
	f := rules.Finding{
		Object: t, Code: "api-missing", Message: fmt.Sprintf("the cluster no longer serves kind %s of group %s: its CustomResourceDefinition was deleted, with all objects of the kind", t.Kind, t.Group),
		Fixes: []string{fmt.Sprintf(rules.InstallCRD+"kind %s of group %s", t.Kind, t.Group)},
	}
	for _, id := range slices.SortedFunc(maps.Keys(k.checker.Flux), controllers.ID.Compare) {
		o := k.checker.Flux[id]
		if name := crdOf(t, o); name != "" {
			applier := rules.NewSubject(observe.KindOf(id), o, k.checker.Cluster.Home)
			f.Details = []string{fmt.Sprintf("%s applies CustomResourceDefinition/%s", id, name)}
			f.Fixes = []string{applier.Command("reconcile")}
		}
	}
	f.Fixes = append(f.Fixes, k.subject.Command("reconcile"))
	return f
}

// deleted returns the finding for an object of an inventory that was deleted.
func deleted(t controllers.ID, s rules.Subject, now time.Time) rules.Finding {
	f := rules.Finding{Object: t, Code: "deleted", Message: fmt.Sprintf("it was applied by %s and then deleted outside Flux", s)}
	detail, fixes := correction(s, now)
	f.Details, f.Fixes = []string{detail}, fixes
	return f
}
