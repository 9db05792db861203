package tree

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// cluster lists objects, or only their metadata.
type cluster struct{ client *kube.Client }

// metadataSuffices lists kinds without a status and with large or confidential content, for which
// only the metadata is read. A CustomResourceDefinition has a status, but also large schemas.
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
		return c.client.WithServedVersion(ctx, k, func(r kube.Resource) error { return c.list(ctx, r, s, visit) })
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
		s.OnlyMetadata, s.Without = true, []string{"spec", "data", "binaryData", "stringData", "metadata.managedFields"}
	}
	_, err := c.client.List(ctx, r, s, visit)
	return err
}

// lookUp discovers the plural and version of a kind: custom resources may have
// irregular plurals, and inventories may have versions that are no longer
// served.
func (c *cluster) lookUp(ctx context.Context, r kube.Resource) (kube.Resource, error) {
	missing := fmt.Errorf("the cluster does not serve %s in %q: %w", r.Kind, r.GroupVersion(), errNotServed)
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
	return c.client.Discovery().Kinds(ctx, schema.GroupVersion{Group: name, Version: group.PreferredVersion.Version})
}

func (c *cluster) read(ctx context.Context, path string, into any) error {
	body, err := c.client.Raw(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decoding the response for %s: %w", strconv.Quote(path), err)
	}
	return nil
}
