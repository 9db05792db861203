package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

// builtinWords are the kinds that people mostly ask about, by the words of
// kubectl: what stands here costs no discovery.
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

// Words returns the words for the kinds that people mostly ask about.
func Words() []string {
	var words []string
	for _, b := range builtinWords {
		words = append(words, strings.Fields(b.words)[0])
	}
	for _, k := range controllers.Kinds {
		words = append(words, strings.ToLower(k.Kind))
	}
	return words
}

// UnknownWordError says that a cluster serves nothing that is called so.
type UnknownWordError struct{ Word string }

func (e *UnknownWordError) Error() string {
	return fmt.Sprintf("the cluster has no resource type %q", e.Word)
}

// Named returns the resource that a word of kubectl means: a plural, singular,
// short name or kind, with or without its group. Only what is neither Flux's
// nor built in is looked up, in two requests.
func (c *Client) Named(ctx context.Context, word string) (Resource, error) {
	word = strings.ToLower(word)
	for _, b := range builtinWords {
		if slices.Contains(strings.Fields(b.words), word) {
			return Guess(schema.GroupVersionKind{Group: b.group, Version: b.version, Kind: b.kind}), nil
		}
	}
	if rows := controllers.Called(word); len(rows) == 1 {
		return Of(rows[0]), nil
	}
	for _, root := range []string{"/apis", "/api"} {
		found, err := c.lookUp(ctx, root, func(r apidiscovery.APIResourceDiscovery, group string) bool {
			names := append([]string{r.Resource, r.SingularResource, strings.ToLower(r.ResponseKind.Kind)}, r.ShortNames...)
			return slices.ContainsFunc(names, func(name string) bool { return word == name || word == name+"."+group })
		})
		if err != nil || found != nil {
			return value(found), err
		}
	}
	return Resource{}, &UnknownWordError{word}
}

// Kind returns the resource of a kind in an API version, as manifests name it.
func (c *Client) Kind(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	root := "/apis"
	if gvk.Group == "" {
		root = "/api"
	}
	found, err := c.lookUp(ctx, root, func(r apidiscovery.APIResourceDiscovery, group string) bool {
		return group == gvk.Group && r.ResponseKind.Kind == gvk.Kind
	})
	if err == nil && found == nil {
		err = &UnknownWordError{gvk.GroupKind().String()}
	}
	return value(found), err
}

func value(r *Resource) Resource {
	if r == nil {
		return Resource{}
	}
	return *r
}

// lookUp returns the first resource that means accepts, in the server's order
// of preference; nil where there is none.
func (c *Client) lookUp(ctx context.Context, root string, means func(r apidiscovery.APIResourceDiscovery, group string) bool) (*Resource, error) {
	groups, err := c.resourceTypes(ctx, root)
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				if r.ResponseKind == nil || !slices.Contains(r.Verbs, "get") || !means(r, group.Name) {
					continue
				}
				return &Resource{
					schema.GroupVersionResource{Group: group.Name, Version: version.Version, Resource: r.Resource},
					r.ResponseKind.Kind, r.Scope == apidiscovery.ScopeCluster,
				}, nil
			}
		}
	}
	return nil, nil //nolint:nilnil // nothing is called so
}

// APIs returns what the cluster serves, sorted: its API versions, such as
// apps/v1, and the kinds in them, such as apps/v1/Deployment.
func (c *Client) APIs(ctx context.Context) ([]string, error) {
	var served []string
	for _, root := range []string{"/apis", "/api"} {
		groups, err := c.resourceTypes(ctx, root)
		if err != nil {
			return nil, err
		}
		for _, group := range groups {
			for _, version := range group.Versions {
				gv := schema.GroupVersion{Group: group.Name, Version: version.Version}.String()
				served = append(served, gv)
				for _, kind := range kindsOf(version) {
					served = append(served, gv+"/"+kind)
				}
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

// resourceTypes is all that the server knows below /api or /apis, in one
// request: aggregated discovery, which every Kubernetes that Flux supports has.
func (c *Client) resourceTypes(ctx context.Context, root string) ([]apidiscovery.APIGroupDiscovery, error) {
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	body, err := answer(ctx, c.raw.Get().AbsPath(root).SetHeader("Accept", aggregated))
	if err != nil {
		return nil, fmt.Errorf("asking the cluster for its resource types: %w", err)
	}
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("reading the cluster's resource types: %w", err)
	}
	return list.Items, nil
}
