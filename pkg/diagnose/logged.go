package diagnose

import (
	"context"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
	"github.com/fluxkit/flux/pkg/logs"
)

// unfinished lists the codes of roots whose reconciliation has not finished.
var unfinished = []string{"progressing", "unreconciled", "behind", "deleting"}

const (
	// panicLines is the maximum number of errors to read for an object. panicStreams is the maximum number of pods to read them
	// from.
	panicLines, panicStreams = 20, 4
	// controller-runtime logs reconcilerError with the error of a reconciliation. The error for a recovered panic has the prefix
	// and the suffix.
	reconcilerError          = "Reconciler error"
	panicPrefix, panicSuffix = "panic: ", " [recovered]"
)

// findLogged adds the last error that the controller has logged about an object whose reconciliation has not finished. It reports
// whether that is a panic, and makes the panic the root cause: the controllers recover from panics, so the object looks like an
// unfinished reconciliation, and only the log contains the reason. Errors are ignored: the finding is valid without it.
func (s *diagnosis) findLogged(ctx context.Context, root *rules.Finding, sub rules.Subject) bool {
	now := s.config.Now
	if !slices.Contains(unfinished, root.Code) || root.IsProgress(now) {
		return false
	}
	pods, err := logs.Pods(ctx, s.config.Client, s.config.Home)
	if err != nil {
		return false
	}
	pods = slices.DeleteFunc(pods, func(p logs.Pod) bool { return !strings.HasPrefix(p.Name, sub.Kind.Controller+"-") })
	since := root.Since
	if since.IsZero() {
		since = now.Add(-recentEvent)
	}
	last, said, id := "", "", sub.ID()
	err = logs.Read(ctx, s.config.Client, pods, logs.Options{
		Filter:    logs.Filter{Kinds: []string{id.Kind}, Namespace: id.Namespace, Name: id.Name},
		SinceTime: since, Tail: panicLines, Streams: panicStreams, Warn: func(string, ...any) {}, Failed: func(error) {},
	}, func(e *logs.Entry) error {
		if e.At.Before(since) || e.Error == "" { // failed downloads, which are retried, have no error
			return nil
		}
		if text, is := strings.CutPrefix(e.Error, panicPrefix); is && e.Message == reconcilerError {
			last = strings.TrimSuffix(text, panicSuffix)
			return nil
		}
		said = "log of " + sub.Kind.Controller + " " + e.At.UTC().Format("15:04:05") + ": " + failure.OneLine(failure.WithoutTempDirs(failure.Join(e.Message, e.Error)))
		return nil
	})
	if err == nil && last == "" && said != "" {
		root.Details = append(root.Details, said)
	}
	if err != nil || last == "" {
		return false
	}
	root.Details = append([]string{root.Message}, root.Details...)
	root.Code, root.Message = "controller-panic", "the "+sub.Kind.Controller+" panics when it reconciles the object: "+failure.OneLine(last)
	root.Fixes = []string{"suspend the object until the controller is fixed, and report the panic with the stack trace from its log", rules.Logs(id)}
	root.Retry = ""
	return true
}
