package rehearse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/sandbox"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diff"
)

// maxRequests is the maximum number of concurrent requests for single objects.
const maxRequests = 16

// side is the rehearsal with one of the two versions of Flux.
type side struct {
	*Rehearsal
	distribution controllers.Distribution
	sandbox      *sandbox.Sandbox
	// trial is a client whose requests collect warnings in their contexts.
	trial *kube.Client
	set   *manifests.Set
	// address is the URL at which the repository is served.
	address string
	// flux are the Flux objects in their last state, and objects what they have applied.
	flux    map[controllers.Target]flux
	objects map[diff.Ref]*unstructured.Unstructured
	// stored are the storage versions of the CRDs.
	stored map[string]string
	// versions are those of the controllers that ran.
	versions map[string]string
	// unsettled is the error with which the wait for the controllers has ended.
	unsettled error
}

// run starts the sandbox, and lets the controllers reconcile.
func (s *side) run(ctx context.Context) error {
	steps := []struct {
		text string
		do   func(context.Context) error
	}{
		{"starting a sandbox", s.start},
		{"installing Flux", s.install},
		{"serving the repository", s.serve},
		{"reconciling", s.reconcile},
		{"reading the objects", s.read},
	}
	for _, step := range steps {
		s.Progress(s.distribution.Version, step.text)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s of Flux %s: %w", step.text, s.distribution.Version, err)
		}
	}
	return nil
}

func (s *side) start(ctx context.Context) (err error) {
	if s.sandbox, err = sandbox.Start(ctx, s.Program, s.repository.components); err != nil {
		return err
	}
	cfg := rest.CopyConfig(s.sandbox.Client.Config)
	cfg.WarningHandlerWithContext = warningHandler{}
	s.trial, err = kube.New(cfg)
	return err
}

func (s *side) install(ctx context.Context) error {
	options := manifests.Defaults()
	options.Version, options.Namespace, options.Components = s.distribution.Version, s.repository.namespace, s.repository.components
	options.WatchAllNamespaces = s.repository.watchAll
	var err error
	if s.set, err = manifests.Render(options); err != nil {
		return err
	}
	objects := s.set.Unstructured()
	s.stored = storedVersions(objects)
	if err := kube.Apply(ctx, s.sandbox.Client, objects); err != nil {
		return err
	}
	rollout := &diagnose.Rollout{Client: s.sandbox.Client, Namespace: s.set.Namespace, Names: slices.Sorted(slices.Values(s.set.Components))}
	if err := rollout.Wait(ctx); err != nil {
		return err
	}
	s.versions, err = s.sandbox.Versions(ctx)
	return err
}

// serve makes the repository available and applies the objects from which everything else follows.
func (s *side) serve(ctx context.Context) error {
	var selected own
	if s.Exported == nil {
		files, err := s.repository.at(s.set)
		if err != nil {
			return err
		}
		if s.address, err = s.sandbox.Serve(ctx, "rehearsed", files, s.Now()); err != nil {
			return err
		}
		selected = s.own
	}
	if err := isolate(ctx, s.sandbox.Client, selected, s.address); err != nil {
		return err
	}
	return s.apply(ctx, s.initial())
}

// apply applies objects as a user does who has only these manifests. What the API server rejects is
// found again by the dry runs, and does not end the rehearsal of an exported cluster.
func (s *side) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	installed := map[diff.Ref]bool{}
	for _, o := range s.set.Unstructured() {
		installed[identity(o)] = true
	}
	for _, o := range objects {
		if installed[identity(o)] {
			continue // such as the Namespace, whose labels would be removed
		}
		err := kube.Apply(ctx, s.sandbox.Client, []*unstructured.Unstructured{o})
		if err != nil && (s.Exported == nil || !rejected(err)) {
			return err
		}
	}
	return nil
}

func rejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || undeclared(err) != nil
}

func (s *side) initial() []*unstructured.Unstructured {
	if s.Exported == nil {
		return s.repository.sync
	}
	return s.Exported
}

func (s *side) reconcile(ctx context.Context) error {
	found, err := settle(ctx, s.sandbox.Client, s.Now, func(ready, all int) {
		s.Progress(s.distribution.Version, fmt.Sprintf("reconciling: %d of %d objects are ready", ready, all))
	})
	s.flux = found
	// What was reconciled in time is compared nevertheless.
	if errors.Is(err, context.DeadlineExceeded) {
		s.unsettled, err = err, nil
	}
	return err
}

// readTime bounds the reading after the time for the rehearsal is over.
const readTime = time.Minute

// read reads what the Flux objects have applied.
func (s *side) read(ctx context.Context) error {
	if s.unsettled != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), readTime)
		defer cancel()
	}
	targets := map[controllers.Target]bool{}
	for t, f := range s.flux {
		t.APIVersion = s.storage(f.kind)
		targets[t] = true
		for _, m := range f.kind.Managed(f.object) {
			targets[m] = true
		}
	}
	served, err := s.discover(ctx, targets)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	s.objects = map[diff.Ref]*unstructured.Unstructured{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxRequests)
	for t := range maps.Keys(targets) {
		g.Go(func() error {
			o, err := s.get(ctx, t, served)
			if o == nil || err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			s.objects[identity(o)] = o
			return nil
		})
	}
	return g.Wait()
}

// storage returns the API version in which the version of Flux stores a kind: the newest one, to
// which its CRD reduces the objects.
func (s *side) storage(k controllers.Kind) string {
	if version, ok := s.stored[k.CRD()]; ok {
		return k.Group + "/" + version
	}
	return k.APIVersion()
}

// storedVersions returns the storage versions of CRDs by their names.
func storedVersions(objects []*unstructured.Unstructured) map[string]string {
	stored := map[string]string{}
	for _, o := range objects {
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			if version, _ := v.(map[string]any); version["storage"] == true {
				stored[o.GetName()] = controllers.Path{"name"}.String(version)
			}
		}
	}
	return stored
}

// kinds are the resources of API versions by kind.
type kinds map[schema.GroupVersion]map[string]kube.Resource

// discover returns the resources of the kinds that Flux does not define: of those that the repository
// defines, only discovery knows the plural and the scope.
func (s *side) discover(ctx context.Context, targets map[controllers.Target]bool) (kinds, error) {
	served := kinds{}
	for t := range targets {
		gv, err := schema.ParseGroupVersion(t.APIVersion)
		if _, known := served[gv]; known || err != nil || kube.IsFluxGroup(gv.Group) {
			continue
		}
		found, err := s.sandbox.Client.Discovery().Kinds(ctx, gv)
		if err != nil && !kube.NotServed(err) && !apierrors.IsNotFound(err) {
			return nil, err
		}
		served[gv] = found
	}
	return served, nil
}

// get reads an object, nil if it does not exist or belongs to the installation.
func (s *side) get(ctx context.Context, t controllers.Target, served kinds) (*unstructured.Unstructured, error) {
	gv, err := schema.ParseGroupVersion(t.APIVersion)
	if err != nil {
		return nil, err
	}
	r, ok := served[gv][t.Kind]
	if !ok {
		r = kube.ResourceFor(gv.WithKind(t.Kind))
	}
	o, err := s.sandbox.Client.Get(ctx, r, t.Namespace, t.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || kube.Label(o, kube.PartOfLabel) == "flux" && kube.Label(o, kube.InstanceLabel) == s.set.Namespace {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: o}
	object.SetGroupVersionKind(gv.WithKind(t.Kind))
	return object, nil
}

// identity identifies an object in every version of its kind.
func identity(o *unstructured.Unstructured) diff.Ref {
	ref := diff.RefOf(o)
	ref.Version = ""
	return ref
}
