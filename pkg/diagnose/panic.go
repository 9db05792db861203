package diagnose

import (
	"context"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/logs"
)

// unfinished are the codes of roots whose reconciliation has not finished.
var unfinished = []string{"progressing", "unreconciled", "behind", "deleting"}

const (
	// panicLines is the maximum number of errors of an object to read, and panicStreams that of the
	// pods of its controller.
	panicLines, panicStreams = 20, 4
	// controller-runtime logs this message with the error of a reconciliation, and wraps a panic
	// from which it has recovered.
	reconcilerError          = "Reconciler error"
	panicPrefix, panicSuffix = "panic: ", " [recovered]"
)

// panics reports whether the controller panics when it reconciles an object, and makes that the root
// cause. The controllers recover, so that the object keeps the state of an unfinished reconciliation, and
// only the log has the reason. Errors are ignored: the finding is valid without it.
func (s *examiner) panics(ctx context.Context, root *Finding, sub subject) bool {
	if !slices.Contains(unfinished, root.Code) || (Case{Root: *root}).young(s.Now) {
		return false
	}
	pods, err := logs.Pods(ctx, s.Client, s.Home)
	if err != nil {
		return false
	}
	pods = slices.DeleteFunc(pods, func(p logs.Pod) bool { return !strings.HasPrefix(p.Name, sub.kind.Controller+"-") })
	since := root.Since
	if since.IsZero() {
		since = s.Now.Add(-eventEvidence)
	}
	last := ""
	err = logs.Read(ctx, s.Client, pods, logs.Options{
		Filter:    logs.Filter{Kinds: []string{sub.kind.Kind}, Namespace: sub.namespace(), Name: sub.name(), Level: "error"},
		SinceTime: since, Tail: panicLines, Streams: panicStreams, Warn: func(string, ...any) {}, Failed: func(error) {},
	}, func(e *logs.Entry) error {
		text, is := strings.CutPrefix(e.Error, panicPrefix)
		if is = is && e.Message == reconcilerError && !e.At.Before(since); is {
			last = strings.TrimSuffix(text, panicSuffix)
		}
		return nil
	})
	if err != nil || last == "" {
		return false
	}
	root.Details = append([]string{root.Message}, root.Details...)
	root.Code, root.Message = "controller-panic", "the "+sub.kind.Controller+" panics when it reconciles the object: "+oneLine(last)
	root.Remedies = []string{"report the failure of the controller with the stack in its log, and suspend the object until it is fixed", sub.logs()}
	return true
}
