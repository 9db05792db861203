package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

const (
	// listTimeout is the time limit for the first list of a kind, and retryPause the time until a kind that could not be watched is
	// listed again. atOnce limits concurrent lists.
	listTimeout, retryPause = 30 * time.Second, 20 * time.Second
	atOnce                  = 32
)

// Access is the state of the data for a kind.
type Access string

// The values of Access. A Lost kind has the objects from before the connection was lost.
const (
	Loading   Access = "Loading"
	Current   Access = "Current"
	Lost      Access = "Lost"
	Forbidden Access = "Forbidden"
	Unread    Access = "Unread"
	Absent    Access = "Absent"
)

// Source is a kind in a namespace, "" for all namespaces.
type Source struct {
	Kind      controllers.Kind
	Namespace string
	Access    Access
	// Since is the time at which Access changed, and Err the reason for it.
	Since time.Time
	Err   error
}

// feed holds the objects of a source, each as a row without problems.
type feed struct {
	Source
	// known reports whether the diagnosis knows the kind.
	known bool
	rows  map[controllers.ID]*Row
}

// keep adds or replaces an object. The caller holds the lock.
func (f *feed) keep(o controllers.Object) {
	slim(o)
	row := rowOf(&f.Kind, o)
	if !f.known {
		row.extend()
	}
	f.rows[row.ID] = row
}

// Cluster holds the objects of a cluster.
type Cluster struct {
	// Name is the name of the cluster in the list of several clusters, "" in the list of one.
	Name string
	// Diagnoser reads the controllers and finds root causes. Its time is ignored.
	Diagnoser diagnose.Diagnoser
	// Namespaces lists the namespaces to read, empty for all.
	Namespaces []string
	Now        func() time.Time

	mu    sync.Mutex
	feeds []*feed
	// unextended is the reason why the kinds of projects that extend Flux are unknown, or nil.
	unextended  error
	controllers diagnose.Controllers
	changed     chan struct{}
}

// New returns a cluster that has read nothing.
func New(name string, d diagnose.Diagnoser, namespaces []string, now func() time.Time) *Cluster {
	c := &Cluster{Name: name, Diagnoser: d, Namespaces: namespaces, Now: now, changed: make(chan struct{}, 1)}
	c.add(controllers.Known)
	return c
}

// add adds the sources of kinds, and returns them.
func (c *Cluster) add(kinds []controllers.Kind) []*feed {
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	before := len(c.feeds)
	for _, k := range kinds {
		_, known := controllers.KindOf(k.Group, k.Kind)
		for _, namespace := range namespaces {
			c.feeds = append(c.feeds, &feed{Source{Kind: k, Namespace: namespace, Access: Loading, Since: c.Now()}, known, map[controllers.ID]*Row{}})
		}
	}
	return c.feeds[before:]
}

// extend adds the sources of the kinds of projects that extend Flux, and returns them.
func (c *Cluster) extend(ctx context.Context) ([]*feed, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	kinds, err := kube.Extensions(ctx, c.Diagnoser.Client)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unextended = err
	c.signal()
	return c.add(kinds), err
}

// Changed receives a value after one or more changes.
func (c *Cluster) Changed() <-chan struct{} { return c.changed }

// Read lists all objects once. It returns an error only if the cluster cannot be read at all.
func (c *Cluster) Read(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	list := func(feeds []*feed) {
		for _, f := range feeds {
			g.Go(func() error {
				if err := c.follow(gctx, f, errListed); f.Access == Unread || gctx.Err() != nil {
					return err
				}
				return nil
			})
		}
	}
	known := c.feeds
	g.Go(func() error { return c.readControllers(gctx) })
	g.Go(func() error {
		extensions, _ := c.extend(gctx) // the snapshot contains the error
		list(extensions)
		return nil
	})
	list(known)
	if err := g.Wait(); err != nil {
		return fmt.Errorf("listing the Flux objects: %w", err)
	}
	return nil
}

// Run watches all objects and the controllers until ctx is done, in goroutines that it starts with start.
func (c *Cluster) Run(ctx context.Context, start func(func())) {
	watch := func(feeds []*feed) {
		for _, f := range feeds {
			start(func() {
				for ctx.Err() == nil {
					_ = c.follow(ctx, f, nil)      // the source records the error
					_ = web.Sleep(ctx, retryPause) // ends with ctx
				}
			})
		}
	}
	known := c.feeds
	start(func() { c.watchControllers(ctx) })
	start(func() {
		extensions, err := c.extend(ctx)
		for err != nil && web.Sleep(ctx, retryPause) == nil {
			extensions, err = c.extend(ctx)
		}
		watch(extensions)
	})
	watch(known)
}

// selection selects the objects of a source, without fields that are neither shown nor diagnosed.
func (f *feed) selection() kube.Selection {
	return kube.Selection{Namespace: f.Namespace, Without: []string{
		"metadata.managedFields.fieldsV1", "metadata.managedFields.fieldsType", "metadata.managedFields.apiVersion", "metadata.managedFields.operation",
		"metadata.uid", "spec.values", "spec.postRenderers", "spec.patches", "spec.postBuild", "status.inventory",
	}}
}

// errListed ends a watch after the first list.
var errListed = errors.New("listed")

// follow watches a source until the server rejects the watch, or only lists it if listed is an error.
func (c *Cluster) follow(ctx context.Context, f *feed, listed error) error {
	bounded := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, listTimeout)
	}
	s := f.selection()
	s.Connected = func(connected bool) { c.connect(f, connected) }
	err := c.Diagnoser.Client.WithServedVersion(ctx, f.Kind, func(r kube.Resource) error {
		return c.Diagnoser.Client.Watch(ctx, bounded, r, s,
			func(objects []controllers.Object) error { c.put(f, objects, nil); return listed },
			func(e kube.Event) error { c.change(f, e); return nil })
	})
	if ctx.Err() == nil && err != nil && !errors.Is(err, errListed) {
		c.put(f, nil, err)
	}
	return err
}

// put replaces the objects of a source after a list, or records why the list failed. It keeps the objects after a lost
// connection.
func (c *Cluster) put(f *feed, objects []controllers.Object, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	access := Current
	var absent *kube.MissingKindError
	switch {
	case err == nil:
	case errors.As(err, &absent):
		access = Absent
	case apierrors.IsForbidden(err):
		access = Forbidden
	case f.Access == Current, f.Access == Lost:
		c.set(f, Lost, err)
		return
	default:
		access = Unread
	}
	clear(f.rows)
	for _, o := range objects {
		f.keep(o)
	}
	c.set(f, access, err)
}

// slim removes the copy of the manifest that kubectl stores.
func slim(o controllers.Object) {
	v, _ := controllers.Path{"metadata.annotations"}.Lookup(o)
	annotations, _ := v.(map[string]any)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
}

func (c *Cluster) change(f *feed, e kube.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Deleted {
		delete(f.rows, controllers.IDOf(e.Object))
	} else {
		f.keep(e.Object)
	}
	c.signal()
}

func (c *Cluster) connect(f *feed, connected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case connected && f.Access == Lost:
		c.set(f, Current, nil)
	case !connected && f.Access == Current:
		c.set(f, Lost, nil)
	}
}

// set sets the access to a source and signals the change. The caller holds the lock.
func (c *Cluster) set(f *feed, access Access, err error) {
	if f.Access != access {
		f.Since = c.Now()
	}
	f.Access, f.Err = access, err
	c.signal()
}

func (c *Cluster) signal() {
	select {
	case c.changed <- struct{}{}:
	default: // already signaled
	}
}

func (c *Cluster) readControllers(ctx context.Context) error {
	d := c.Diagnoser
	d.Now = c.Now()
	state, err := d.Controllers(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.controllers = state
	c.signal()
	return nil
}

// errChanged ends a watch after a change.
var errChanged = errors.New("changed")

// watchControllers reads the controllers at first and after each change of their Deployments.
func (c *Cluster) watchControllers(ctx context.Context) {
	read := func([]controllers.Object) error {
		bounded, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		return c.readControllers(bounded)
	}
	s := kube.Selection{Namespace: c.Diagnoser.Home, Labels: kube.PartOfFlux, OnlyMetadata: true, Without: []string{"metadata.managedFields", "spec", "status"}}
	for ctx.Err() == nil {
		pause := time.Second // a rollout changes a Deployment several times
		err := c.Diagnoser.Client.Watch(ctx, context.WithCancel, kube.BuiltIn("apps/v1", "Deployment"), s, read, func(kube.Event) error { return errChanged })
		if !errors.Is(err, errChanged) {
			pause = retryPause
			_ = read(nil) // the state records the error, unless ctx has ended
		}
		_ = web.Sleep(ctx, pause) // ends with ctx
	}
}

// Snapshot is the state of a cluster at one time, or of several clusters.
type Snapshot struct {
	// Cluster is the name of the cluster. Parts holds the states of several clusters.
	Cluster string
	Parts   []Snapshot
	// Rows lists the objects, root causes first.
	Rows        []Row
	Sources     []Source
	Controllers diagnose.Controllers
	// Unextended is the reason why the kinds of projects that extend Flux are unknown, or nil.
	Unextended error
	// Counts holds the number of objects in each state.
	Counts map[State]int
	At     time.Time
}

// Snapshot evaluates the objects.
func (c *Cluster) Snapshot() Snapshot {
	c.mu.Lock()
	s := Snapshot{Cluster: c.Name, At: c.Now(), Controllers: c.controllers, Counts: map[State]int{}}
	if len(c.Namespaces) == 0 { // users with permissions in namespaces only need not list CRDs
		s.Unextended = c.unextended
	}
	var objects []controllers.Object
	var rows []Row
	for _, f := range c.feeds {
		s.Sources = append(s.Sources, f.Source)
		for _, row := range f.rows {
			rows = append(rows, *row)
			if f.known {
				objects = append(objects, row.Object)
			}
		}
	}
	c.mu.Unlock()
	d := c.Diagnoser
	d.Now = s.At
	s.Rows = arrange(rows, d.Given(objects, s.Controllers, s.hidden))
	for i := range s.Rows {
		s.Rows[i].Cluster = c.Name
		s.Counts[s.Rows[i].State]++
	}
	return s
}

// Merge returns the state of several clusters. Rows of each cluster that belong to a root cause stay together.
func Merge(parts []Snapshot) Snapshot {
	if len(parts) == 1 {
		return parts[0]
	}
	s := Snapshot{Parts: parts, Counts: map[State]int{}}
	for _, part := range parts {
		s.Rows, s.Sources = append(s.Rows, part.Rows...), append(s.Sources, part.Sources...)
		for state, n := range part.Counts {
			s.Counts[state] += n
		}
		if part.At.After(s.At) {
			s.At = part.At
		}
	}
	group := func(row Row) int { // failures, progress, other rows
		switch {
		case row.Root == (controllers.ID{}):
			return 2 + row.State.order()
		case row.State == Failed || row.State == Waiting:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(s.Rows, func(a, b Row) int { return cmp.Compare(group(a), group(b)) })
	return s
}

// errElsewhere is the reason for an unknown object in a namespace that is not selected.
var errElsewhere = errors.New("its namespace is not selected")

// hidden returns the reason why the existence of an object is unknown, or nil.
func (s Snapshot) hidden(t controllers.ID) error {
	for _, source := range s.Sources {
		if source.Kind.Kind != t.Kind || source.Namespace != "" && source.Namespace != t.Namespace {
			continue
		}
		if source.Access == Current || source.Access == Absent {
			return nil
		}
		return cmp.Or(source.Err, error(errElsewhere))
	}
	return errElsewhere
}

// Loading reports whether some kinds have not been listed yet.
func (s Snapshot) Loading() bool {
	return slices.ContainsFunc(s.Sources, func(source Source) bool { return source.Access == Loading })
}

// Unknown describes which objects could not be listed, one line for each reason.
func (s Snapshot) Unknown() []string {
	if len(s.Parts) > 0 {
		return s.each(Snapshot.Unknown)
	}
	namespaces := map[string]map[string]error{}
	for _, source := range s.Sources {
		if source.Access == Forbidden || source.Access == Unread {
			if namespaces[source.Namespace] == nil {
				namespaces[source.Namespace] = map[string]error{}
			}
			namespaces[source.Namespace][source.Kind.Kind] = source.Err
		}
	}
	var lines []string
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		within := "all namespaces"
		if namespace != "" {
			within = "namespace " + namespace
		}
		lines = append(lines, observe.ByReason(namespaces[namespace], func(err error) string {
			if apierrors.IsForbidden(err) {
				return "no permission to list in " + within
			}
			return unreadable(err)
		})...)
	}
	switch {
	case apierrors.IsForbidden(s.Unextended):
		lines = append(lines, "no permission to list CustomResourceDefinitions: kinds of other projects")
	case s.Unextended != nil:
		lines = append(lines, "kinds of other projects: "+unreadable(s.Unextended))
	}
	return lines
}

// unreadable returns the message of an error without the address of the request, which differs between kinds.
func unreadable(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}

// Unread returns the reasons why the controllers are unknown.
func (s Snapshot) Unread() []string {
	switch {
	case len(s.Parts) > 0:
		return s.each(Snapshot.Unread)
	case s.Controllers.Unread == "":
		return nil
	}
	return []string{s.Controllers.Unread}
}

// each returns the lines of all clusters, after their names.
func (s Snapshot) each(lines func(Snapshot) []string) []string {
	var all []string
	for _, part := range s.Parts {
		for _, line := range lines(part) {
			all = append(all, part.Cluster+": "+line)
		}
	}
	return all
}
