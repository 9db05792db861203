package build

import (
	"context"
	"errors"
	"sync"
)

// Once returns a function that calls another function once for each argument. It caches results and ErrNotFound, but no
// other errors. It is safe for concurrent use. Nil remains nil.
func Once[In comparable, Out any](call func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	if call == nil {
		return nil
	}
	type answer struct {
		out Out
		err error
	}
	var mu sync.Mutex
	known := map[In]answer{}
	return func(ctx context.Context, in In) (Out, error) {
		mu.Lock()
		defer mu.Unlock()
		if found, ok := known[in]; ok {
			return found.out, found.err
		}
		out, err := call(ctx, in)
		if err == nil || errors.Is(err, ErrNotFound) {
			known[in] = answer{out, err}
		}
		return out, err
	}
}
