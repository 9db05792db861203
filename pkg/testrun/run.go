// Package testrun runs the controllers of a temporary sandbox on a repository, or on the exported objects
// of a cluster, until everything is reconciled or stuck. It prints nothing. It uses sources to serve the
// repository and the replacements of other sources, stub to generate missing values, policy to isolate
// the sandbox, and settle to wait for the controllers. examine reports the result.
package testrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun/installation"
	"github.com/fluxkit/flux/pkg/testrun/policy"
	"github.com/fluxkit/flux/pkg/testrun/settle"
	"github.com/fluxkit/flux/pkg/testrun/sources"
	"github.com/fluxkit/flux/pkg/testrun/stub"
)

// MaxRequests is the maximum number of concurrent requests for single objects.
const MaxRequests = 16

// Run is a repository that is reconciled in a temporary sandbox.
type Run struct {
	// Program is the path of flux-sandbox.
	Program string
	// Distribution is the Flux version to install.
	Distribution controllers.Distribution
	// Repository is served in the sandbox, unless Exported is set.
	Repository *sources.Repository
	// Head replaces the files of Repository when they have been reconciled, unless it is nil. Base is the
	// name of the revision of Repository.
	Head *sources.Repository
	Base string
	// Exported lists the objects of a cluster, in the order in which they are applied.
	Exported []*unstructured.Unstructured
	// Received is set if notifications and commits are received in the sandbox. Otherwise, they are not sent.
	Received *policy.Received
	// Watching is called when Flux is installed, before anything is reconciled. It may be nil.
	Watching func()
	// Pushing is called before the files of Head replace the files of Repository. It may be nil.
	Pushing func(context.Context)
	// Mappings lists the mappings that are served in place of other sources.
	Mappings []mapped.Mapping
	// FakeSecrets creates missing Secrets and ConfigMaps with generated values, and serves documents
	// that SOPS has encrypted with stub values.
	FakeSecrets bool
	// AgeKey holds the private age keys for the Secrets with which Kustomizations decrypt.
	AgeKey string
	// AllowNetwork allows the controllers to connect to other machines and to all programs on this machine.
	AllowNetwork bool
	// Inputs holds the inputs of ResourceSetInputProviders.
	Inputs map[controllers.ID][]map[string]any
	// Kustomizer runs kustomize, see build.Options.
	Kustomizer build.Kustomizer
	// Now is the clock.
	Now func() time.Time
	// Progress is called with each step.
	Progress func(step string)

	// Sandbox is set by Start. Its client has administrator permissions.
	Sandbox *sandbox.Sandbox
	// Set contains the installation manifests, and Versions the versions of the running controllers.
	Set      *manifests.Set
	Versions map[string]string
	// Address is the URL at which the repository is served.
	Address string
	// Flux holds the Flux objects as found by Settle. Objects holds these and the objects that they
	// have applied, as found by Read.
	Flux    map[controllers.ID]settle.Flux
	Objects map[controllers.ID]*unstructured.Unstructured
	// Unsettled is the error if Settle or Read exceeded its deadline.
	Unsettled error
	// Sources serves the mappings, and Generated lists the Secrets and ConfigMaps that were created with generated values.
	Sources   *sources.Server
	Generated []stub.Need
	// OperatorCRDs holds the CRDs of flux-operator, nil if it does not run.
	OperatorCRDs []*unstructured.Unstructured
	// Timeline records the events after the head was pushed.
	Timeline *Timeline

	// strict is a client whose requests collect warnings in their contexts.
	strict *kube.Client
	// stored holds the storage versions of the CRDs.
	stored map[string]string
	// sync holds the source and the Kustomization of the cluster, nil for those of Repository.
	sync []*unstructured.Unstructured
}

// Run starts the sandbox, waits until the controllers have reconciled, and reads the result. The caller
// must always call Close.
func (r *Run) Run(ctx context.Context) error {
	for _, do := range []func(context.Context) error{r.Start, r.Settle, r.Read, r.push} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Start starts the sandbox, installs Flux, serves the repository, and applies the objects from which
// everything else follows.
func (r *Run) Start(ctx context.Context) error {
	for _, step := range []struct {
		text string
		do   func(context.Context) error
	}{
		{"starting a sandbox", r.start},
		{"installing Flux", r.install},
		{"serving the repository", r.serve},
	} {
		r.Progress(step.text)
		if err := step.do(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", step.text, err)
		}
	}
	return nil
}

// files returns the files that are served.
func (r *Run) files() (map[string][]byte, error) {
	files, err := r.Repository.Served(r.Set)
	if r.FakeSecrets {
		files = stub.Files(files)
	}
	return files, err
}

// Close removes the sandbox.
func (r *Run) Close() error {
	if r.Sandbox == nil {
		return nil
	}
	var err error
	if r.Sources != nil {
		err = r.Sources.Close()
	}
	return errors.Join(err, r.Sandbox.Close())
}

func (r *Run) start(ctx context.Context) (err error) {
	if r.operated() {
		if r.OperatorCRDs, err = installation.OperatorCRDs(r.Program); err != nil {
			return err
		}
	}
	if r.Sandbox, err = sandbox.Start(ctx, r.Program, sandbox.Options{Controllers: r.programs(), Namespace: r.Repository.Namespace, AllowNetwork: r.AllowNetwork}); err != nil {
		return err
	}
	cfg := rest.CopyConfig(r.Sandbox.Client.Config)
	cfg.WarningHandlerWithContext = warningHandler{}
	r.strict, err = kube.New(cfg)
	return err
}

// operated reports whether the run has objects of flux-operator.
func (r *Run) operated() bool {
	if r.Exported != nil {
		return slices.ContainsFunc(r.Exported, func(o *unstructured.Unstructured) bool { return o.GetAPIVersion() == installation.OperatorVersion })
	}
	return r.Repository.Mentions(installation.OperatorVersion) || r.Head != nil && r.Head.Mentions(installation.OperatorVersion)
}

// programs returns the names of the controllers that run.
func (r *Run) programs() []string {
	names := slices.Clone(r.Repository.Components)
	if r.OperatorCRDs != nil {
		names = append(names, controllers.OperatorName)
	}
	return names
}

func (r *Run) install(ctx context.Context) error {
	options := manifests.Defaults()
	options.Version, options.Namespace, options.Components = r.Distribution.Version, r.Repository.Namespace, r.Repository.Components
	options.WatchAllNamespaces = r.Repository.WatchAll
	var err error
	if r.Set, err = manifests.Render(options); err != nil {
		return err
	}
	i := installation.Installation{Set: r.Set, Programs: r.programs(), OperatorCRDs: r.OperatorCRDs, Kustomizer: r.Kustomizer}
	if r.Exported == nil {
		i.Sync, i.Instance = r.Repository.Sync, r.Repository.Instance
	}
	objects, err := i.Apply(ctx, r.Sandbox.Client)
	if err != nil {
		return err
	}
	r.sync, r.stored = i.Sync, storedVersions(objects)
	r.Versions, _, err = r.Sandbox.Controllers(ctx)
	return err
}

// serve makes the repository available and applies the first objects.
func (r *Run) serve(ctx context.Context) error {
	isolation := policy.Isolation{Decrypted: r.FakeSecrets, Received: r.Received, AllowNetwork: r.AllowNetwork, Inputs: r.Inputs}
	if r.Exported == nil {
		files, err := r.files()
		if err != nil {
			return err
		}
		if r.Address, err = r.Sandbox.Serve(ctx, "fleet", files, r.Now()); err != nil {
			return err
		}
		isolation.Repository, isolation.Address = r.Repository.Identity(), r.Address
	}
	r.Sources = &sources.Server{Mappings: r.Mappings, Inputs: r.Inputs, Sandbox: r.Sandbox, FakeSecrets: r.FakeSecrets, Now: r.Now}
	var err error
	if isolation.Redirects, err = r.Sources.Serve(ctx); err != nil {
		return err
	}
	if r.Received != nil {
		if err := r.Sandbox.Reach(ctx, strings.TrimPrefix(r.Received.Sink, "http://")); err != nil {
			return err
		}
	}
	if err := isolation.Apply(ctx, r.Sandbox.Client, r.Sandbox.Guard); err != nil {
		return err
	}
	if r.Watching != nil {
		r.Watching()
	}
	return r.apply(ctx, r.Initial())
}

// apply applies objects like a user who only has these manifests. Objects that the API server rejects
// do not end the rehearsal of an exported cluster: the dry runs report them.
func (r *Run) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	installed := map[controllers.ID]bool{}
	for _, o := range r.Set.Unstructured() {
		installed[controllers.IDOf(o.Object)] = true
	}
	for _, o := range objects {
		if installed[controllers.IDOf(o.Object)] {
			continue // applying the Namespace, for example, would remove labels
		}
		err := kube.Apply(ctx, r.Sandbox.Client, []*unstructured.Unstructured{o})
		if err != nil && (r.Exported == nil || !Rejected(err)) {
			return err
		}
	}
	return nil
}

// Rejected reports whether an API server has rejected a manifest.
func Rejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || Undeclared(err) != nil
}

// Initial returns the objects that are applied first.
func (r *Run) Initial() []*unstructured.Unstructured {
	switch {
	case r.Exported != nil:
		return r.Exported
	case r.sync != nil:
		return r.sync
	}
	return r.Repository.Sync
}

// Settle waits until all Flux objects are reconciled or stuck. At the deadline of ctx it sets Unsettled
// and returns nil: the objects that were reconciled in time are still reported.
func (r *Run) Settle(ctx context.Context) error {
	r.Progress("reconciling")
	w := &settle.Watcher{Client: r.Sandbox.Client, Now: r.Now, Operated: r.OperatorCRDs != nil}
	if r.FakeSecrets || r.AgeKey != "" {
		w.Quieted = func(ctx context.Context, failing []settle.Flux) (bool, error) {
			created, err := r.Provider().Provide(ctx, failing)
			r.Generated = append(r.Generated, created...)
			return len(created) > 0, err
		}
	}
	found, err := w.Settle(ctx, func(ready, all int) {
		r.Progress(fmt.Sprintf("reconciling: %d of %d objects are ready", ready, all))
	})
	r.Flux, r.Unsettled = found, nil
	if errors.Is(err, context.DeadlineExceeded) {
		r.Unsettled, err = err, nil
	}
	if err != nil {
		return fmt.Errorf("reconciling: %w", err)
	}
	return nil
}

// Provider returns a provider for the Secrets and ConfigMaps that Flux objects refer to.
func (r *Run) Provider() stub.Provider {
	return stub.Provider{
		Client: r.Sandbox.Client, Home: r.Set.Namespace, Tree: r.Repository.Tree, Fake: r.FakeSecrets, AgeKey: r.AgeKey, Kustomizer: r.Kustomizer,
	}
}

// ReadTime bounds the time for reading the result, which does not end at the deadline of the run.
const ReadTime = time.Minute

// Reading returns a context for reading the result. It ends after ReadTime or if ctx is canceled, but not at the
// deadline of ctx.
func Reading(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, end := context.WithTimeout(context.WithoutCancel(ctx), ReadTime)
	reading, cancel := context.WithCancelCause(bounded)
	stop := context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			cancel(cause)
		}
	})
	return reading, func() { stop(); cancel(nil); end() }
}

// Read reads the objects that the Flux objects have applied. If ReadTime is too short, Objects is incomplete and Unsettled is set.
func (r *Run) Read(ctx context.Context) error {
	r.Progress("reading the objects")
	ctx, cancel := Reading(ctx)
	defer cancel()
	err := r.read(ctx)
	if err != nil {
		err = fmt.Errorf("reading the objects: %w", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		r.Unsettled, err = cmp.Or(r.Unsettled, err), nil
	}
	return err
}

func (r *Run) read(ctx context.Context) error {
	targets := map[controllers.VersionedID]bool{}
	for t, f := range r.Flux {
		targets[controllers.VersionedID{ID: t, Version: r.storageVersion(f.Kind)}] = true
		for _, e := range controllers.Inventory(f.Object) {
			targets[e] = true
		}
	}
	var err error
	r.Objects, err = r.ReadAll(ctx, targets)
	return err
}

// ReadAll reads the objects that exist.
func (r *Run) ReadAll(ctx context.Context, targets map[controllers.VersionedID]bool) (map[controllers.ID]*unstructured.Unstructured, error) {
	resource, err := r.Resources(ctx, targets)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	found := map[controllers.ID]*unstructured.Unstructured{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(MaxRequests)
	for t := range maps.Keys(targets) {
		g.Go(func() error {
			o, err := r.get(ctx, t, resource(t.GroupVersionKind()))
			if o == nil || err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found[controllers.IDOf(o.Object)] = o
			return nil
		})
	}
	return found, g.Wait() // found holds the objects that were read before a failure
}

// Storage returns the API version in which the Flux version stores a kind: the newest version, to
// which its CRD prunes the objects.
func (r *Run) Storage(k controllers.Kind) string { return k.Group + "/" + r.storageVersion(k) }

func (r *Run) storageVersion(k controllers.Kind) string {
	return cmp.Or(r.stored[k.CRD()], k.Version)
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

// Resources returns a function that returns the resource of a kind of the targets. The plural and
// the scope of kinds that Flux does not define are available only from discovery.
func (r *Run) Resources(ctx context.Context, targets map[controllers.VersionedID]bool) (func(schema.GroupVersionKind) kube.Resource, error) {
	kinds := kube.NewKinds(r.Sandbox.Client)
	var unknown []schema.GroupVersionKind
	for t := range targets {
		if !kube.IsFluxGroup(t.Group) {
			unknown = append(unknown, t.GroupVersionKind())
		}
	}
	return func(kind schema.GroupVersionKind) kube.Resource {
		if resource, ok := kinds.Of(kind); ok {
			return resource
		}
		return kube.ResourceFor(kind)
	}, kinds.Discover(ctx, unknown...)
}

// get reads an object, nil if it does not exist or belongs to the installation.
func (r *Run) get(ctx context.Context, t controllers.VersionedID, resource kube.Resource) (*unstructured.Unstructured, error) {
	o, err := r.Sandbox.Client.Get(ctx, resource, t.ID.Namespace, t.ID.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || kube.Label(o, kube.PartOfLabel) == "flux" && kube.Label(o, kube.InstanceLabel) == r.Set.Namespace {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: o}
	object.SetGroupVersionKind(t.GroupVersionKind())
	return object, nil
}

// Reconcile requests a reconciliation of an object, and waits until it has ended.
func (r *Run) Reconcile(ctx context.Context, t controllers.ID) error {
	f := r.Flux[t]
	token := r.Now().Format(time.RFC3339Nano)
	return r.Sandbox.Client.WithServedVersion(ctx, f.Kind, func(resource kube.Resource) error {
		o, err := r.Sandbox.Client.Annotate(ctx, resource, t.Namespace, t.Name, map[string]any{controllers.RequestAnnotation: token})
		if err != nil {
			return err
		}
		return r.Sandbox.Client.Follow(ctx, resource, kube.Selection{Namespace: t.Namespace, Name: t.Name}, controllers.Path{"metadata.resourceVersion"}.String(o), func(e kube.Event) (bool, error) {
			return e.Deleted || f.Kind.Settled(e.Object, token), nil
		})
	})
}
