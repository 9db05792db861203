// Package helmprocess has charts rendered by a process of its own: flux-helm,
// which begins with Helm's SDK where flux begins without. The two exchange
// lines of JSON, several renders at a time; secrets go through the pipe only.
package helmprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/fluxkit/flux/pkg/build"
)

// atOnce bounds how many charts are rendered at the same time.
const atOnce = 8

type request struct {
	ID      int           `json:"id"`
	Release build.Release `json:"release"`
}

type response struct {
	ID       int             `json:"id"`
	Rendered *build.Rendered `json:"rendered,omitempty"`
	Error    string          `json:"error,omitempty"`
}

// Serve answers requests until there are no more.
func Serve(ctx context.Context, renderer build.Renderer, in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	answers := json.NewEncoder(out)
	slots := make(chan struct{}, atOnce)
	for requests := json.NewDecoder(in); ; {
		var r request
		err := requests.Decode(&r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			answer := answerTo(ctx, renderer, r)
			mu.Lock()
			defer mu.Unlock()
			_ = answers.Encode(answer) // who asked is gone if this fails
		})
	}
}

func answerTo(ctx context.Context, renderer build.Renderer, r request) response {
	rendered, err := renderer.Render(ctx, r.Release)
	if err != nil {
		return response{ID: r.ID, Error: err.Error()}
	}
	return response{ID: r.ID, Rendered: rendered}
}
