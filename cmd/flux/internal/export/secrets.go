package export

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// ahead is the maximum number of objects that wait for their Secrets to be read.
const ahead = 4 * app.Concurrency

// printer prints objects in order, each followed by the Secrets that no earlier
// object refers to. The Secrets are read while further objects are listed, so
// that neither all objects nor all Secrets are in memory.
type printer struct {
	out *manifestWriter
	// secrets is nil if Secrets are not printed.
	secrets *secretReader
	// written is called with the number of printed objects.
	written func(int)

	queue chan exported
	done  chan struct{}
	// broken is closed after an output error, which is stored in err.
	broken chan struct{}
	err    error
	failed error
}

// exported is an object with its references to Secrets.
type exported struct {
	object controllers.Object
	refs   []reference
}

// start starts printing the objects that are added, until end is called.
func (p *printer) start(ctx context.Context, a *app.App) {
	p.queue, p.done, p.broken = make(chan exported, ahead), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.done)
		n := 0
		for e := range p.queue {
			if p.err != nil {
				continue // add returns the error
			}
			n++
			p.written(n)
			if p.err = p.print(ctx, a, e); p.err != nil {
				close(p.broken)
			}
		}
	}()
}

// add prints an object after the previous ones.
func (p *printer) add(o controllers.Object) error {
	e := exported{object: o}
	if p.secrets != nil {
		e.refs = p.secrets.references(o)
	}
	select {
	case p.queue <- e:
		return nil
	case <-p.broken:
		return p.err
	}
}

// end waits until all objects are printed. It returns an output error, or ErrReported if a Secret
// could not be read.
func (p *printer) end() error {
	close(p.queue)
	<-p.done
	if p.secrets != nil {
		_ = p.secrets.reading.Wait() // each Secret has its error
	}
	if p.err != nil {
		return p.err
	}
	return p.failed
}

func (p *printer) print(ctx context.Context, a *app.App, e exported) error {
	if err := p.out.add(e.object); err != nil {
		return err
	}
	for _, ref := range e.refs {
		<-ref.secret.read
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := ref.failure(); err != nil {
			a.Report(err)
			p.failed = clierr.ErrReported
		}
		if o := ref.secret.take(); o != nil {
			if err := p.out.add(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// secretReader reads each Secret once, app.Concurrency at a time.
type secretReader struct {
	get     func(namespace, name string) (controllers.Object, error)
	mu      sync.Mutex
	known   map[string]*secret
	reading errgroup.Group
}

func newSecretReader(ctx context.Context, client *kube.Client) *secretReader {
	get := func(namespace, name string) (controllers.Object, error) {
		return client.Get(ctx, kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}), namespace, name)
	}
	r := &secretReader{get: get, known: map[string]*secret{}}
	r.reading.SetLimit(app.Concurrency)
	return r
}

// secret is a Secret that is being read.
type secret struct {
	namespace, name string
	// read is closed when object or err is set.
	read   chan struct{}
	object controllers.Object
	err    error
	// reported is true once err was reported.
	reported bool
}

// take returns the Secret on its first call only, so that it is printed once and then released.
func (s *secret) take() controllers.Object {
	o := s.object
	s.object = nil
	return o
}

// reference is a reference to a Secret.
type reference struct {
	secret   *secret
	by       string
	optional bool
}

// references returns the Secrets that an object references, and starts reading the ones that were not
// referenced before.
func (r *secretReader) references(o controllers.Object) []reference {
	var refs []reference
	for _, ref := range controllers.SecretsOf(o) {
		by := fmt.Sprintf("%s %s/%s (%s)", o["kind"], controllers.Namespace(o), controllers.Name(o), ref.Field)
		refs = append(refs, reference{r.secret(controllers.Namespace(o), ref.Name), by, ref.Optional})
	}
	return refs
}

func (r *secretReader) secret(namespace, name string) *secret {
	key := objref.Target{Kind: controllers.Kind{Kind: "Secret"}, Namespace: namespace, Name: name}.Key()
	r.mu.Lock()
	defer r.mu.Unlock()
	s, known := r.known[key]
	if known {
		return s
	}
	s = &secret{namespace: namespace, name: name, read: make(chan struct{})}
	r.known[key] = s
	r.reading.Go(func() error {
		defer close(s.read)
		s.object, s.err = r.get(namespace, name)
		return nil
	})
	return s
}

// failure returns the error of an unreadable Secret once. A missing Secret is an error of the first
// reference that is not optional.
func (r reference) failure() error {
	s := r.secret
	if s.err == nil || s.reported || r.optional && apierrors.IsNotFound(s.err) {
		return nil
	}
	s.reported = true
	return fmt.Errorf("reading the Secret %s/%s of %s: %w", s.namespace, s.name, r.by, s.err)
}
