package why

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// references parses KIND/NAME… or KIND[,KIND…] NAME….
func references(cmd *cobra.Command, args []string) ([]objref.Ref, error) {
	lines, err := objref.CommandLines(cmd.CommandPath(), args, true)
	if err != nil {
		return nil, err
	}
	var all []objref.Ref
	for _, line := range lines {
		ref, err := objref.ParseCommandLine(cmd.CommandPath(), line)
		if err != nil {
			return nil, err
		}
		all = append(all, ref)
	}
	return all, nil
}

// explain diagnoses the named objects one by one.
func explain(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	refs, err := references(cmd, args)
	if err != nil {
		return err
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	for i := range refs {
		refs[i].Namespace = refs[i].NamespaceOr(namespace)
	}
	results, failures := verdicts(ctx, a, client, refs)
	if interrupted := context.Cause(cmd.Context()); interrupted != nil {
		return interrupted // a report of what was read until then could name another root cause
	}
	var reports []report.Verdict
	var failed error
	for i, v := range results {
		switch err := failures[i]; {
		case err != nil && (len(refs) == 1 || clierr.Unreachable(err)):
			return err
		case err != nil:
			a.Report(err)
			failed = clierr.Worse(failed, &clierr.ExitCodeError{Code: clierr.ExitUndetermined})
			continue
		}
		commits := report.UnappliedCommits(ctx, v.Facts)
		if o.format != "" {
			reports = append(reports, encoded(v, commits))
			reports[len(reports)-1].Object = objectOf(refs, i)
		} else if err := page(a, i, v, refs[i], commits); err != nil {
			return err
		}
		failed = clierr.Worse(failed, determined(nil, v))
	}
	switch {
	case o.format != "" && len(refs) == 1:
		err = a.Encode(o.format, reports[0])
	case o.format != "":
		err = a.Encode(o.format, append([]report.Verdict{}, reports...))
	}
	return errors.Join(err, failed)
}

// page prints the diagnosis of an object, with an empty line before all but the first.
func page(a *app.App, i int, v diagnose.Result, ref objref.Ref, commits report.Unapplied) error {
	if i > 0 {
		if err := a.Printf("\n"); err != nil {
			return err
		}
	}
	return printVerdict(a, v, ref, diagnose.Scope{}, commits)
}

// objectOf returns the object of a report if there are several.
func objectOf(refs []objref.Ref, i int) *controllers.ID {
	if len(refs) == 1 {
		return nil
	}
	ref := refs[i]
	id := controllers.ID{Kind: ref.Word, Namespace: ref.Namespace, Name: ref.Name}
	if len(ref.Kinds) == 1 {
		id = ref.Kinds[0].ID(ref.Namespace, ref.Name)
	}
	return &id
}

// verdicts diagnoses objects concurrently.
func verdicts(ctx context.Context, a *app.App, client *kube.Client, refs []objref.Ref) ([]diagnose.Result, []error) {
	results, failures := make([]diagnose.Result, len(refs)), make([]error, len(refs))
	line := a.UI.Progress(a.Now, "checking")
	defer line.Done()
	var g errgroup.Group
	g.SetLimit(app.Concurrency)
	for i, ref := range refs {
		g.Go(func() error {
			results[i], failures[i] = verdict(ctx, report.Diagnoser(a, client), ref)
			return nil
		})
	}
	_ = g.Wait() // the functions return nil
	return results, failures
}
