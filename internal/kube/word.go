package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube/transport"
	"github.com/fluxkit/flux/pkg/controllers"
)

// builtinWords lists common kinds by the names that kubectl accepts. They are resolved without discovery.
var builtinWords = []struct {
	group, version, kind string
	words                string
}{
	{"", "v1", "Pod", "pod pods po"},
	{"", "v1", "Service", "service services svc"},
	{"", "v1", "ConfigMap", "configmap configmaps cm"},
	{"", "v1", "Secret", "secret secrets"},
	{"", "v1", "ServiceAccount", "serviceaccount serviceaccounts sa"},
	{"", "v1", "Namespace", "namespace namespaces ns"},
	{"", "v1", "Node", "node nodes no"},
	{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaim persistentvolumeclaims pvc"},
	{"", "v1", "PersistentVolume", "persistentvolume persistentvolumes pv"},
	{"apps", "v1", "Deployment", "deployment deployments deploy deployments.apps"},
	{"apps", "v1", "ReplicaSet", "replicaset replicasets rs replicasets.apps"},
	{"apps", "v1", "StatefulSet", "statefulset statefulsets sts statefulsets.apps"},
	{"apps", "v1", "DaemonSet", "daemonset daemonsets ds daemonsets.apps"},
	{"batch", "v1", "Job", "job jobs jobs.batch"},
	{"batch", "v1", "CronJob", "cronjob cronjobs cj cronjobs.batch"},
	{"networking.k8s.io", "v1", "Ingress", "ingress ingresses ing"},
	{"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicy networkpolicies netpol"},
	{"rbac.authorization.k8s.io", "v1", "Role", "role roles"},
	{"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebinding rolebindings"},
	{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterrole clusterroles"},
	{"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebinding clusterrolebindings"},
	{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinition customresourcedefinitions crd crds"},
}

// Words returns names of common kinds, for completion.
func Words() []string {
	var words []string
	for _, b := range builtinWords {
		words = append(words, strings.Fields(b.words)[0])
	}
	for _, k := range controllers.Known {
		words = append(words, strings.ToLower(k.Kind))
	}
	return words
}

// UnknownWordError is returned if the cluster serves no resource with a name.
type UnknownWordError struct{ Word string }

func (e *UnknownWordError) Error() string {
	return fmt.Sprintf("the cluster has no resource type %q", e.Word)
}

// AmbiguousWordError is returned if a name matches resources of several API groups.
type AmbiguousWordError struct {
	Word string
	// Resources lists the resources with their groups, such as "clusters.example.com".
	Resources []string
}

func (e *AmbiguousWordError) Error() string {
	return fmt.Sprintf("resource type %q is ambiguous: the cluster serves %s", e.Word, strings.Join(e.Resources, ", "))
}

// NotServedVersionError is returned if the cluster serves a kind, but not in the requested
// version.
type NotServedVersionError struct {
	Kind, Version string
	// Served lists the API versions that contain the kind.
	Served []string
}

func (e *NotServedVersionError) Error() string {
	return fmt.Sprintf("the cluster does not serve %s in %s, only in %s", e.Kind, e.Version, strings.Join(e.Served, ", "))
}

// Named returns the resource with a name as in kubectl: a plural, singular, short name or kind in
// any case, with or without version and group. Only resources that are neither Flux nor built-in
// resources require requests: two that are sent concurrently.
func (d Discovery) Named(ctx context.Context, word string) (Resource, error) {
	word = strings.ToLower(word)
	for _, b := range builtinWords {
		if slices.Contains(strings.Fields(b.words), word) {
			return ResourceFor(schema.GroupVersionKind{Group: b.group, Version: b.version, Kind: b.kind}), nil
		}
	}
	if rows := controllers.KindsNamed(word); len(rows) == 1 {
		return Of(rows[0]), nil
	}
	groups, err := d.allResourceTypes(ctx)
	if err != nil {
		return Resource{}, err
	}
	found := named(groups, word)
	switch {
	case len(found) == 0:
		return Resource{}, &UnknownWordError{word}
	case len(found) == 1 || found[0].Group == "": // as in kubectl, the core group precedes all others
		return found[0], nil
	}
	ambiguous := &AmbiguousWordError{Word: word}
	for _, r := range found {
		ambiguous.Resources = append(ambiguous.Resources, r.GroupResource().String())
	}
	return Resource{}, ambiguous
}

// NamedIn returns the resource with a name in an API version.
func (d Discovery) NamedIn(ctx context.Context, gv schema.GroupVersion, word string) (Resource, error) {
	versions, err := d.NamedInGroup(ctx, gv.Group, word)
	if err != nil {
		return Resource{}, err
	}
	missing := &NotServedVersionError{Kind: versions[0].Kind, Version: gv.String()}
	for _, r := range versions {
		if r.Version == gv.Version {
			return r, nil
		}
		missing.Served = append(missing.Served, r.GroupVersion().String())
	}
	return Resource{}, missing
}

// NamedInGroup returns the resource with a name in an API group, in all served versions, the preferred version first.
func (d Discovery) NamedInGroup(ctx context.Context, group, word string) ([]Resource, error) {
	root := "/apis"
	if group == "" {
		root = "/api"
	}
	groups, err := d.resourceTypes(ctx, root)
	if err != nil {
		return nil, err
	}
	var versions []Resource
	for _, g := range groups {
		if g.Name != group {
			continue
		}
		for _, version := range g.Versions {
			alone := apidiscovery.APIGroupDiscovery{ObjectMeta: g.ObjectMeta, Versions: []apidiscovery.APIVersionDiscovery{version}}
			versions = append(versions, named([]apidiscovery.APIGroupDiscovery{alone}, strings.ToLower(word))...)
		}
	}
	if len(versions) == 0 {
		return nil, &UnknownWordError{schema.GroupKind{Group: group, Kind: word}.String()}
	}
	return versions, nil
}

// named returns the resources with a lower-case name, each in its preferred version. A
// plural, singular or kind takes precedence over a short name.
func named(groups []apidiscovery.APIGroupDiscovery, word string) []Resource {
	var byName, byShort []Resource
	for _, group := range groups {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				if r.ResponseKind == nil || !slices.Contains(r.Verbs, "get") {
					continue
				}
				called := func(name string) bool {
					return name != "" && (word == name || word == name+"."+group.Name || word == name+"."+version.Version+"."+group.Name)
				}
				resource := Resource{
					GroupVersionResource: schema.GroupVersionResource{Group: group.Name, Version: version.Version, Resource: r.Resource},
					Kind:                 r.ResponseKind.Kind, ClusterScoped: r.Scope == apidiscovery.ScopeCluster,
				}
				switch {
				case called(r.Resource) || called(r.SingularResource) || called(strings.ToLower(r.ResponseKind.Kind)):
					byName = withResource(byName, resource)
				case slices.ContainsFunc(r.ShortNames, called):
					byShort = withResource(byShort, resource)
				}
			}
		}
	}
	if len(byName) > 0 {
		return byName
	}
	return byShort
}

// withResource appends a resource unless the list already contains another version of it.
func withResource(list []Resource, r Resource) []Resource {
	if slices.ContainsFunc(list, func(other Resource) bool { return other.GroupResource() == r.GroupResource() }) {
		return list
	}
	return append(list, r)
}

// APIs returns the served API versions, such as apps/v1, and their kinds, such as
// apps/v1/Deployment, sorted.
func (d Discovery) APIs(ctx context.Context) ([]string, error) {
	groups, err := d.allResourceTypes(ctx)
	if err != nil {
		return nil, err
	}
	var served []string
	for _, group := range groups {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}.String()
			served = append(served, gv)
			for _, kind := range kindsOf(version) {
				served = append(served, gv+"/"+kind)
			}
		}
	}
	slices.Sort(served)
	return slices.Compact(served), nil
}

func kindsOf(version apidiscovery.APIVersionDiscovery) []string {
	var kinds []string
	add := func(kind *metav1.GroupVersionKind) {
		if kind != nil {
			kinds = append(kinds, kind.Kind)
		}
	}
	for _, r := range version.Resources {
		add(r.ResponseKind)
		for _, below := range r.Subresources {
			add(below.ResponseKind)
		}
	}
	return kinds
}

// allResourceTypes discovers all resources, the core group first.
func (d Discovery) allResourceTypes(ctx context.Context) ([]apidiscovery.APIGroupDiscovery, error) {
	roots := []string{"/api", "/apis"}
	answers, failures := make([][]apidiscovery.APIGroupDiscovery, len(roots)), make([]error, len(roots))
	var asking sync.WaitGroup
	for i, root := range roots {
		asking.Go(func() { answers[i], failures[i] = d.resourceTypes(ctx, root) })
	}
	asking.Wait()
	return slices.Concat(answers...), errors.Join(failures...)
}

// resourceTypes discovers the resources of /api or /apis in one request with aggregated discovery,
// which all supported versions of Kubernetes provide.
func (d Discovery) resourceTypes(ctx context.Context, root string) ([]apidiscovery.APIGroupDiscovery, error) {
	body, err := d.Aggregated(ctx, root)
	if err != nil {
		return nil, err
	}
	return ResourceTypes(body)
}

// Aggregated returns the APIGroupDiscoveryList of /api or /apis.
func (d Discovery) Aggregated(ctx context.Context, root string) ([]byte, error) {
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	body, err := transport.Send(ctx, d.raw.Get().AbsPath(root).SetHeader("Accept", aggregated))
	if err != nil {
		return nil, fmt.Errorf("discovering the resource types: %w", err)
	}
	return body, nil
}

// ResourceTypes decodes an APIGroupDiscoveryList.
func ResourceTypes(body []byte) ([]apidiscovery.APIGroupDiscovery, error) {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("parsing the resource types: %w", err)
	}
	return list.Items, nil
}
