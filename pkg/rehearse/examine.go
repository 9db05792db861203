package rehearse

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun"
)

// examination holds the responses of two API servers to the manifest of a Flux object.
type examination struct {
	kind     controllers.Kind
	manifest *unstructured.Unstructured
	// before and after are the responses to the manifest, and next is the response to the manifest
	// in the newest API version of the next Flux version.
	before, after, next testrun.Attempt
	newest              string
	// early reports whether the current version already serves the newest API version.
	early bool
}

// examine tries the manifest of an object with both versions.
func examine(ctx context.Context, from, to *testrun.Run, k controllers.Kind, m *unstructured.Unstructured) (*examination, error) {
	e := &examination{kind: k, manifest: m, newest: to.Storage(k)}
	var errs [4]error
	e.before, errs[0] = from.Try(ctx, m)
	e.after, errs[1] = to.Try(ctx, m)
	if gv, err := schema.ParseGroupVersion(e.newest); err == nil && e.newest != m.GetAPIVersion() {
		migrated := m.DeepCopy()
		migrated.SetGroupVersionKind(gv.WithKind(k.Kind))
		e.next, errs[2] = to.Try(ctx, migrated)
		var now testrun.Attempt
		now, errs[3] = from.Try(ctx, migrated)
		e.early = !now.NotServed
	}
	return e, errors.Join(errs[:]...)
}

// examined collects examinations.
type examined struct {
	mu   sync.Mutex
	list []*examination
}

func (x *examined) add(e *examination) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = append(x.list, e)
}

// sorted returns the examinations in the order of their objects.
func (x *examined) sorted() []*examination {
	slices.SortFunc(x.list, func(a, b *examination) int {
		return strings.Compare(controllers.IDOf(a.manifest.Object).String(), controllers.IDOf(b.manifest.Object).String())
	})
	return x.list
}
