package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/secrets/redact"
)

// NameTimeout replaces "context deadline exceeded" in an error message with the duration of
// --timeout if --timeout ended the operation.
func (a *App) NameTimeout(message string) string {
	var over *clierr.TimeoutError
	if operation := a.operation.Load(); operation == nil || !errors.As(context.Cause(*operation), &over) {
		return message
	}
	return strings.ReplaceAll(message, context.DeadlineExceeded.Error(), over.Error())
}

// diagnosisTimeout is the default of App.DiagnosisTimeout.
const diagnosisTimeout = 10 * time.Second

// briefTimeout is the default of App.BriefTimeout.
const briefTimeout = 2 * time.Second

// Hint returns the remedy for an error, if the remedy depends on the cluster or the kind catalog,
// else "".
func (a *App) Hint(err error) string {
	var notFound *objref.NotFoundError
	var absent *kube.MissingKindError
	var unknown *kube.UnknownWordError
	var ambiguous *kube.AmbiguousWordError
	var version *kube.NotServedVersionError
	switch {
	case errors.As(err, &notFound) && a.Suggest != nil:
		return cmp.Or(a.Suggest(notFound), notFound.Remedy())
	case errors.As(err, &absent):
		return objref.InstallHint(absent.Kind)
	case errors.As(err, &unknown):
		return "'kubectl api-resources' lists the resource types of the cluster"
	case errors.As(err, &ambiguous):
		return "add the group, as in " + ambiguous.Resources[0]
	case errors.As(err, &version):
		return "use --api-version=" + version.Served[0]
	}
	return ""
}

// Report prints an error that does not end the command. It skips joined errors that are already
// reported. An unreachable cluster is reported once, because all requests fail with that error.
func (a *App) Report(err error) {
	if errors.Is(err, clierr.ErrReported) {
		for _, part := range clierr.Unreported(err) {
			a.Report(part)
		}
		return
	}
	message, hint := clierr.Explain(err, nil)
	if clierr.Unreachable(err) {
		if _, reported := a.unreachable.LoadOrStore(message, true); reported {
			return
		}
	}
	if hint == "" {
		hint = a.Hint(err)
	}
	a.UI.Failure("%s", redact.Text(message))
	if hint != "" {
		a.UI.Line("  %s", redact.Text(hint))
	}
}

// ReportedUnreachable returns the message with which Report has reported that the cluster is unreachable, "" if it has not.
func ReportedUnreachable(a *App) string {
	reported := ""
	a.unreachable.Range(func(message, _ any) bool {
		reported, _ = message.(string)
		return false
	})
	return reported
}

// ReportAll reports failures with the remedies that explain adds.
func ReportAll(a *App, failures []error, explain func(error) error) error {
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	if len(failures) == 0 {
		return nil
	}
	for _, failure := range failures {
		a.Report(explain(failure))
	}
	return clierr.ErrReported
}
