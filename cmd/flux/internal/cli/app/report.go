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

// NameTimeout replaces "context deadline exceeded" in the message of a library
// with the duration of --timeout, if that has ended the operation.
func (a *App) NameTimeout(message string) string {
	var over *clierr.TimeoutError
	if operation := a.operation.Load(); operation == nil || !errors.As(context.Cause(*operation), &over) {
		return message
	}
	return strings.ReplaceAll(message, context.DeadlineExceeded.Error(), over.Error())
}

// diagnosisTimeout is the default of App.DiagnosisTimeout.
const diagnosisTimeout = 10 * time.Second

// Hint returns the remedy of an error that requires the cluster or the catalog
// of kinds, "" for other errors.
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

// Report prints an error that does not end the command. It skips the joined
// parts that are already reported, and prints once that a cluster is unreachable: all requests
// fail with that error.
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
