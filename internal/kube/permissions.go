package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube/transport"
)

// Permission is a permission in RBAC terms.
type Permission struct {
	Verb, Group, Resource string
	// Namespace is "" for cluster-scoped resources.
	Namespace string
	// Name is "" for all objects.
	Name string
}

// String formats the permission like kubectl: create deployments.apps in namespace "web".
func (p Permission) String() string { return p.Verb + " " + p.object() }

func (p Permission) object() string {
	resource := p.Resource
	if p.Group != "" {
		resource += "." + p.Group
	}
	if p.Namespace == "" {
		return resource
	}
	return fmt.Sprintf("%s in namespace %q", resource, p.Namespace)
}

// ApplyPermissions returns the permissions for verbs on objects, without duplicates. more contains additional verbs by
// kind.
func ApplyPermissions(objects []*unstructured.Unstructured, verbs []string, more map[string][]string) []Permission {
	var all []Permission
	for _, o := range objects {
		r := ResourceFor(o.GroupVersionKind())
		for _, verb := range slices.Concat(verbs, more[r.Kind]) {
			p := Permission{Verb: verb, Group: r.Group, Resource: r.Resource, Namespace: o.GetNamespace()}
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// DeniedError lists missing permissions.
type DeniedError struct{ Denied []Permission }

// Error groups the verbs by resource.
func (e *DeniedError) Error() string {
	var objects []string
	verbs := map[string][]string{}
	for _, p := range e.Denied {
		object := p.object()
		if verbs[object] == nil {
			objects = append(objects, object)
		}
		verbs[object] = append(verbs[object], p.Verb)
	}
	for i, object := range objects {
		objects[i] = strings.Join(verbs[object], ", ") + " " + object
	}
	return "no permission to " + strings.Join(objects, "; ")
}

// Access reads the permissions of the client's user.
type Access struct{ raw rest.Interface }

// Access returns a client that reads the permissions of the user.
func (c *Client) Access() Access { return Access{c.raw} }

// Check returns a *DeniedError if the user lacks one of the permissions. It first checks whether the user has all
// permissions, so that a single request is sufficient for cluster administrators.
func (a Access) Check(ctx context.Context, permissions []Permission) error {
	everything, err := a.May(ctx, Permission{Verb: "*", Group: "*", Resource: "*"})
	if err != nil || everything {
		return err
	}
	answers := make([]bool, len(permissions))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRequests)
	for i, p := range permissions {
		g.Go(func() (err error) {
			answers[i], err = a.May(ctx, p)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	denied := &DeniedError{}
	for i, allowed := range answers {
		if !allowed {
			denied.Denied = append(denied.Denied, permissions[i])
		}
	}
	if len(denied.Denied) > 0 {
		return denied
	}
	return nil
}

// May reports whether the user has a permission.
func (a Access) May(ctx context.Context, p Permission) (bool, error) {
	review := map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"verb": p.Verb, "group": p.Group, "resource": p.Resource, "namespace": p.Namespace, "name": p.Name,
		}},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, fmt.Errorf("encoding an access review: %w", err)
	}
	body, err = transport.Send(ctx, a.raw.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").Body(body))
	if err != nil {
		return false, fmt.Errorf("checking the permission to %s: %w", p, err)
	}
	var answer struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return false, fmt.Errorf("reading an access review: %w", err)
	}
	return answer.Status.Allowed, nil
}

// WhoAmI returns the name of the client's user.
func (a Access) WhoAmI(ctx context.Context) (string, error) {
	review := []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	body, err := transport.Send(ctx, a.raw.Post().AbsPath("/apis/authentication.k8s.io/v1/selfsubjectreviews").
		SetHeader("Content-Type", "application/json").Body(review))
	if err != nil {
		return "", fmt.Errorf("reading the user name: %w", err)
	}
	var answer struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", fmt.Errorf("parsing the user name: %w", err)
	}
	return answer.Status.UserInfo.Username, nil
}
