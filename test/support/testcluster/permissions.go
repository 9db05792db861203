package testcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/fluxkit/flux/test/support/testlimit"
)

// waitPermitted waits until the API server grants the permissions of new role bindings to roles among
// the same objects. The API server reads them from a cache, which a busy machine may update after the
// next command of a test.
func (c *Cluster) waitPermitted(ctx context.Context, objects []*unstructured.Unstructured) error {
	rules := map[string][]rbacv1.PolicyRule{}
	var bindings []rbacv1.RoleBinding
	for _, o := range objects {
		if o.GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}
		var role rbacv1.Role // a ClusterRole has the same fields, and so do the bindings
		var binding rbacv1.RoleBinding
		convert := runtime.DefaultUnstructuredConverter.FromUnstructured
		switch o.GetKind() {
		case "Role", "ClusterRole":
			if err := convert(o.Object, &role); err != nil {
				return err
			}
			rules[o.GetKind()+" "+o.GetName()] = role.Rules
		default:
			if err := convert(o.Object, &binding); err != nil {
				return err
			}
			bindings = append(bindings, binding)
		}
	}
	if len(bindings) == 0 {
		return nil
	}
	client, err := authorization.NewForConfig(c.Client.Config)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		for _, s := range b.Subjects {
			for _, rule := range rules[b.RoleRef.Kind+" "+b.RoleRef.Name] {
				if err := waitAllowed(ctx, client.SubjectAccessReviews(), review(b, s, rule)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// review returns a request for the first permission of a rule.
func review(b rbacv1.RoleBinding, s rbacv1.Subject, rule rbacv1.PolicyRule) *authorizationv1.SubjectAccessReview {
	spec := authorizationv1.SubjectAccessReviewSpec{User: s.Name}
	switch s.Kind {
	case rbacv1.GroupKind:
		spec.User, spec.Groups = "", []string{s.Name}
	case rbacv1.ServiceAccountKind:
		spec.User = "system:serviceaccount:" + s.Namespace + ":" + s.Name
	}
	if len(rule.Resources) == 0 {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: rule.Verbs[0]}
		return &authorizationv1.SubjectAccessReview{Spec: spec}
	}
	asked := &authorizationv1.ResourceAttributes{Namespace: b.Namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0]}
	asked.Resource, asked.Subresource, _ = strings.Cut(rule.Resources[0], "/")
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	spec.ResourceAttributes = asked
	return &authorizationv1.SubjectAccessReview{Spec: spec}
}

func waitAllowed(ctx context.Context, reviews authorization.SubjectAccessReviewInterface, asked *authorizationv1.SubjectAccessReview) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, testlimit.Wait, true, func(ctx context.Context) (bool, error) {
		answer, err := reviews.Create(ctx, asked, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the permission %v: %w", asked.Spec, err)
	}
	return nil
}
