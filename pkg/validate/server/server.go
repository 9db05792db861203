// Package server validates objects with the API server of a temporary sandbox.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/sandbox"
	"github.com/fluxkit/flux/internal/sandbox/programs"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diff/crd"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// Schemas implements verdict.Schemas: it sends the objects that are valid according to other
// Schemas to an API server.
type Schemas struct {
	verdict.Schemas
	// Announce is called with a message about the API server.
	Announce func(format string, args ...any)

	// FeatureGates lists the feature gates of the API server, such as Name=true,Other=false.
	FeatureGates string

	program string     // path of flux-sandbox
	mu      sync.Mutex // held while a sandbox exists
	closed  bool
}

// Find sets the program in a flux release.
func (s *Schemas) Find(version string) (err error) {
	s.program, err = programs.Find(version)
	return err
}

// Close waits until no sandbox exists. A validation whose context has ended stops its sandbox.
func (s *Schemas) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// requests is the maximum number of concurrent requests.
const requests = 8

// Validate implements verdict.Schemas. The API server has the CustomResourceDefinitions and the
// namespaces of the objects; nothing else is created.
func (s *Schemas) Validate(ctx context.Context, r verdict.Request) (_ []verdict.Verdict, err error) {
	verdicts, err := s.Schemas.Validate(ctx, r)
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(r.Objects))
	for i, text := range r.Objects {
		if objects[i], err = decode(text); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, context.Cause(ctx)
	}
	control, err := sandbox.Start(ctx, s.program, sandbox.Options{FeatureGates: s.FeatureGates})
	if errors.Is(err, sandbox.ErrNotIsolated) { // without controllers, objects do not cause connections to other servers
		control, err = sandbox.Start(ctx, s.program, sandbox.Options{AllowNetwork: true, FeatureGates: s.FeatureGates})
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, control.Close()) }()
	a := &dryRuns{client: control.Client, kinds: kube.NewKinds(control.Client)}
	if err := a.prepare(ctx, s, r, objects, verdicts); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(requests)
	for i, o := range objects {
		if o.GetNamespace() == "" && verdicts[i].Namespaced {
			continue // this is already reported
		}
		if valid(verdicts[i]) && verdicts[i].Source == "" { // the API server serves no other kinds
			group.Go(func() error { return a.dryRun(ctx, o, &verdicts[i]) })
		}
	}
	return verdicts, group.Wait()
}

func decode(text json.RawMessage) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	err := utiljson.Unmarshal(text, &o.Object)
	return o, err
}

// valid reports whether an object was validated and has no problems.
func valid(v verdict.Verdict) bool { return v.Unknown == "" && len(v.Problems) == 0 }

// dryRuns sends dry-run requests to an API server.
type dryRuns struct {
	client *kube.Client
	kinds  *kube.Kinds
}

// prepare creates the namespaces of the objects and the valid CustomResourceDefinitions.
func (a *dryRuns) prepare(ctx context.Context, s *Schemas, r verdict.Request, objects []*unstructured.Unstructured, verdicts []verdict.Verdict) error {
	var server struct{ GitVersion, Major, Minor string }
	text, err := a.client.Raw(ctx, "/version")
	if err == nil {
		err = json.Unmarshal(text, &server)
	}
	if err != nil {
		return fmt.Errorf("reading the version of the sandbox: %w", err)
	}
	if minor := server.Major + "." + server.Minor; minor != r.Kubernetes {
		return fmt.Errorf("the sandbox runs Kubernetes %s, not %s", minor, r.Kubernetes)
	}
	s.Announce("validating with the API server of a temporary sandbox (Kubernetes %s)", server.GitVersion)
	var all []*unstructured.Unstructured
	var names, namespaces []string
	for i, o := range objects {
		if controllers.IDOf(o.Object).IsCRD() && valid(verdicts[i]) && !slices.Contains(names, o.GetName()) {
			all, names = append(all, o.DeepCopy()), append(names, o.GetName())
		}
		if name := o.GetNamespace(); name != "" && !slices.Contains(namespaces, name) {
			namespaces = append(namespaces, name)
			all = append(all, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
		}
	}
	for _, text := range r.CRDs {
		definition, err := decode(text)
		if err != nil {
			return err
		}
		if !slices.Contains(names, definition.GetName()) {
			all = append(all, definition)
		}
	}
	for _, o := range all {
		if controllers.IDOf(o.Object).IsCRD() { // without the conversion webhook, objects are validated only in their own version
			unstructured.RemoveNestedField(o.Object, "spec", "conversion")
			unstructured.RemoveNestedField(o.Object, "status")
		}
	}
	if err := kube.Apply(ctx, a.client, all); err != nil {
		return fmt.Errorf("preparing the sandbox: %w", err)
	}
	a.learn(all)
	return nil
}

// learn adds the kinds of the CustomResourceDefinitions among the objects. The API server
// serves them as soon as they are established, but its discovery lists them later.
func (a *dryRuns) learn(objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if !controllers.IDOf(o.Object).IsCRD() {
			continue
		}
		kind, definition := crd.Kind(o.Object), crd.Of(o.Object)
		for _, version := range definition.Served {
			resource := kind.WithVersion(version).GroupVersion().WithResource(controllers.Path{"spec.names.plural"}.String(o.Object))
			a.kinds.Add(kube.Resource{GroupVersionResource: resource, Kind: kind.Kind, ClusterScoped: definition.ClusterScoped})
		}
	}
}

// dryRun sends a dry-run request for an object.
func (a *dryRuns) dryRun(ctx context.Context, o *unstructured.Unstructured, v *verdict.Verdict) error {
	if controllers.IDOf(o.Object).IsCRD() {
		return nil // the object is created unless it is invalid
	}
	resource, served, err := a.kinds.Find(ctx, o.GroupVersionKind())
	switch {
	case err != nil:
	case !served:
		err = fmt.Errorf("it does not serve %s in %s", o.GetKind(), o.GetAPIVersion())
	default:
		_, err = kube.DryRun(ctx, a.client, resource, o.Object, kube.Applier{Manager: "kustomize-controller", Strict: true})
	}
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		v.Problems = problems(status)
	default:
		v.Unknown = "the sandbox API server cannot validate it: " + err.Error()
	}
	return nil
}

// problems returns the reasons why the API server rejects an object.
func problems(rejected apierrors.APIStatus) []verdict.Problem {
	status := rejected.Status()
	var all []verdict.Problem
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			all = append(all, verdict.Problem{Rule: verdict.RuleServer, Field: cause.Field, Message: cause.Message})
		}
	}
	if all == nil {
		all = append(all, verdict.Problem{Rule: verdict.RuleServer, Message: status.Message})
	}
	return all
}
