package tree

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// cluster lists objects, or only their metadata, over one connection.
type cluster struct {
	*kube.Client
	metadata metadata.Interface
}

func connect(cfg *rest.Config) (*cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, -1
	httpClient, err := kube.HTTPClient(cfg)
	if err != nil {
		return nil, err
	}
	client, err := kube.NewForHTTP(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), httpClient)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", cfg.Host, err)
	}
	return &cluster{client, meta}, nil
}

// metadataSuffices are kinds without a status and with large or confidential
// content, of which only the existence matters. A CustomResourceDefinition has
// a status, but also large schemas.
var metadataSuffices = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "ServiceAccount"}: true,
	{Kind: "LimitRange"}:     true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                                true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                               true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:                 true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
}

// each calls visit with the selected objects, in a version that the API server
// serves.
func (c *cluster) each(ctx context.Context, r kube.Resource, s kube.Selection, visit func(controllers.Object) error) error {
	if k, ok := controllers.KindOf(r.Group, r.Kind); ok {
		return c.WithServedVersion(ctx, k, func(r kube.Resource) error { return c.list(ctx, r, s, visit) })
	}
	err := c.list(ctx, r, s, visit)
	if !kube.NotServed(err) {
		return err
	}
	served, err := c.lookUp(ctx, r)
	if err != nil {
		return err
	}
	return c.list(ctx, served, s, visit)
}

func (c *cluster) list(ctx context.Context, r kube.Resource, s kube.Selection, visit func(controllers.Object) error) error {
	if metadataSuffices[schema.GroupKind{Group: r.Group, Kind: r.Kind}] {
		return c.listMetadata(ctx, r, s, visit)
	}
	_, err := c.List(ctx, r, s, visit)
	return err
}

// pageSize is the page size for lists of metadata.
const pageSize = 10000

func (c *cluster) listMetadata(ctx context.Context, r kube.Resource, s kube.Selection, visit func(controllers.Object) error) error {
	collection := metadata.ResourceInterface(c.metadata.Resource(r.GroupVersionResource))
	if s.Namespace != "" && !r.ClusterScoped {
		collection = c.metadata.Resource(r.GroupVersionResource).Namespace(s.Namespace)
	}
	options := metav1.ListOptions{Limit: pageSize}
	if s.Name != "" {
		options.FieldSelector = "metadata.name=" + s.Name
	}
	for {
		page, err := collection.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			page.Items[i].APIVersion, page.Items[i].Kind = r.GroupVersion().String(), r.Kind
			o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&page.Items[i])
			if err != nil {
				return fmt.Errorf("reading the list of %s: %w", r.Resource, err)
			}
			if err := visit(o); err != nil {
				return err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// lookUp discovers the plural and version of a kind: custom resources may have
// irregular plurals, and inventories may have versions that are no longer
// served.
func (c *cluster) lookUp(ctx context.Context, r kube.Resource) (kube.Resource, error) {
	missing := fmt.Errorf("the cluster does not serve %s of %q: %w", r.Kind, r.GroupVersion(), errNotServed)
	if r.Group == "" {
		return r, missing
	}
	kinds, err := c.preferred(ctx, r.Group)
	if err != nil {
		return r, notServed(err, missing)
	}
	if served, ok := kinds[r.Kind]; ok {
		return served, nil
	}
	return r, missing
}

// preferred returns the kinds of a group in its preferred version.
func (c *cluster) preferred(ctx context.Context, name string) (map[string]kube.Resource, error) {
	var group metav1.APIGroup
	if err := c.read(ctx, "/apis/"+name, &group); err != nil {
		return nil, err
	}
	return c.Discovery().Kinds(ctx, schema.GroupVersion{Group: name, Version: group.PreferredVersion.Version})
}

func (c *cluster) read(ctx context.Context, path string, into any) error {
	body, err := c.Raw(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decoding the response for %s: %w", strconv.Quote(path), err)
	}
	return nil
}
