package app

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/fluxkit/flux/internal/budget"
)

// Stdin returns standard input. Reads end when ctx is done, but the blocked read of a pipe or
// terminal cannot be canceled and remains until the process exits.
func (a *App) Stdin(ctx context.Context) io.Reader { return &stdin{ctx, a.In} }

// maxStdin is the maximum size of the input of ReadStdin.
const maxStdin = 64 << 20

// ReadStdin reads all of standard input, up to maxStdin.
func ReadStdin(ctx context.Context, a *App) ([]byte, error) {
	text, err := budget.ReadAll(a.Stdin(ctx), "", "it", maxStdin)
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return text, nil
}

type stdin struct {
	ctx  context.Context // stdin is used for one call only
	from io.Reader
}

// Read implements [io.Reader].
func (s *stdin) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	buffer, read := make([]byte, len(p)), make(chan result, 1) // the caller may reuse p after Read returns
	go func() {
		n, err := s.from.Read(buffer)
		read <- result{n, err}
	}()
	select {
	case <-s.ctx.Done():
		return 0, context.Cause(s.ctx)
	case r := <-read:
		return copy(p, buffer[:r.n]), r.err
	}
}

// ReadInput reads a file, or standard input for "-".
func ReadInput(ctx context.Context, a *App, file string) ([]byte, error) {
	if file == "-" {
		return ReadStdin(ctx, a)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	return text, nil
}
