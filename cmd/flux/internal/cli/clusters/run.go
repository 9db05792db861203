package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// atOnce is the number of clusters on which a command runs at the same time.
const atOnce = 8

// result is the result of a command on one cluster.
type result struct {
	context string
	code    int
	err     error
	out     *capture
	// unreachable is the message about an unreachable cluster, "" for other clusters.
	unreachable string
	// stopped is set if another cluster has failed before the command was complete.
	stopped bool
}

// unknown reports whether the result for the cluster is undetermined.
func (r result) unknown() bool {
	var config *clierr.ConfigError
	return r.code == clierr.ExitUndetermined || r.unreachable != "" || errors.As(r.err, &config)
}

// exitCode returns the exit code for the cluster: 2 if the result is undetermined, even if the command exits with 1 for errors.
func (r result) exitCode() int {
	if r.stopped || r.code == clierr.ExitFailed && r.unknown() {
		return clierr.ExitUndetermined
	}
	return r.code
}

// Run runs a command on all contexts, and returns the exit code. Messages are prefixed with the context and printed
// immediately. Standard output is printed when all runs are complete, in the order of the contexts.
func Run(ctx context.Context, a *app.App, several *SeveralError, execute func(context.Context, *app.App) (int, error)) int {
	results := make([]result, len(several.Contexts))
	messages := &prefixed{w: a.Err}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, name := range several.Contexts {
		group.Go(func() error {
			r := result{context: name, out: &capture{terminal: a.Out}}
			lines := messages.of(name)
			fork := app.Fork(a, name, r.out, lines, r.out.table)
			r.code, r.err = execute(running, fork)
			r.unreachable = app.ReportedUnreachable(fork)
			if clierr.Unreachable(r.err) {
				r.unreachable, _ = clierr.Explain(r.err, nil)
			}
			lines.end()
			r.stopped = r.code != clierr.ExitSuccess && running.Err() != nil && ctx.Err() == nil
			// flux wait stops on all clusters after the first failure.
			if r.exitCode() == clierr.ExitFailed && strings.HasPrefix(several.Command, "wait") {
				stop(errStopped)
			}
			results[i] = r
			return nil
		})
	}
	_ = group.Wait() // the errors are in results
	code := clierr.ExitSuccess
	for _, r := range results {
		code = worse(code, r)
	}
	if err := show(a, several, results); err != nil {
		a.UI.Failure("%s", redact.Text(err.Error()))
		return clierr.ExitFailed
	}
	if ctx.Err() == nil {
		summarize(a, results)
	}
	return code
}

// errStopped ends a command on the other clusters after a failure.
var errStopped = errors.New("stopped because another cluster failed")

// worse returns the exit code of a command: interruptions and undetermined results take precedence over
// failures. Clusters on which the command was stopped because of another failure do not count.
func worse(code int, r result) int {
	own := r.exitCode()
	order := []int{clierr.ExitSuccess, clierr.ExitFailed, clierr.ExitUndetermined, clierr.ExitInterrupted}
	if !r.stopped && slices.Index(order, own) > slices.Index(order, code) {
		return own
	}
	return code
}

// summarize reports the clusters that failed and the clusters with undetermined results.
func summarize(a *app.App, results []result) {
	var failed, unknown []string
	for _, r := range results {
		switch {
		case r.code == clierr.ExitSuccess, r.stopped:
		case r.unknown():
			unknown = append(unknown, r.context)
		default:
			failed = append(failed, r.context)
		}
	}
	if len(failed) > 0 {
		a.UI.Failure("%d of %d clusters failed: %s", len(failed), len(results), strings.Join(failed, ", "))
	}
	if len(unknown) > 0 {
		a.UI.Failure("undetermined for %d of %d clusters: %s", len(unknown), len(results), strings.Join(unknown, ", "))
	}
}

// prefixed prints the messages of several clusters line by line.
type prefixed struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *prefixed) of(name string) *prefixedLines {
	return &prefixedLines{all: p, name: printable.Line(name)}
}

// prefixedLines prefixes the lines of one cluster with its name.
type prefixedLines struct {
	all  *prefixed
	name string
	mu   sync.Mutex
	rest string
}

// Write implements io.Writer. It prints complete lines.
func (l *prefixedLines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest += string(text)
	for {
		line, rest, ok := strings.Cut(l.rest, "\n")
		if !ok {
			return len(text), nil
		}
		l.rest = rest
		if err := l.all.line(l.name, line); err != nil {
			return 0, err
		}
	}
}

// end prints an incomplete last line.
func (l *prefixedLines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rest != "" {
		_ = l.all.line(l.name, l.rest) // as for other messages, a closed stream is not an error
		l.rest = ""
	}
}

func (p *prefixed) line(name, line string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := fmt.Fprintf(p.w, "%s: %s\n", name, line)
	return err
}
