// Package why implements the why command.
package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// rootCausesShown is the number of root causes that are reported in full without --all.
const rootCausesShown = 20

type options struct {
	several kinds.Several
	all     bool
	format  string
}

// NewCommand returns the why command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "why [kind name ...]",
		Short: "Explain why a resource is not ready and how to fix it",
		Long: `Explain why a resource is not ready, or why a change is not applied yet, and how
to fix it. The report has the root cause, the dependency chain from the resource
to it, the other resources that it blocks, and the fix.

Selection:
  A resource is a Flux resource or any object that Flux manages, for example a
  Deployment. Without a resource, all Flux resources and the controllers are
  checked, or with --namespace the Flux resources of one namespace. Labels, or
  kinds with -A or -l, select a subset. See "flux help diagnosis".

Output:
  The first 20 root causes are reported and the others counted, also in JSON and
  YAML; --all reports all. Checks that could not run are listed.`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "no problem was found; resources whose reconciliation or deletion has just started are not problems",
			clierr.ExitFailed:  "a problem was found",
			clierr.ExitUndetermined: "undetermined: the object does not exist, the cluster does not respond, the command line is invalid, or no problem was " +
				"found but relevant objects could not be read",
		}.Annotations(),
		Example: `  # Check all Flux resources
  flux why

  # Check the Flux resources of a namespace
  flux why -n apps

  # Check the resources of a team, and all HelmReleases
  flux why -l team=blue
  flux why hr -A

  # Explain why a change is not live
  flux why kustomization my-app
  flux why deployment my-app -n apps
  flux why hr/my-app -n apps
  flux why image update my-app
  flux why ks/my-app hr/my-app

  # Print the codes of the root causes
  flux why --all -o json | jq -r '.cases[].root.code'`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: complete.Subjects(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, args) })
		},
	}
	flags := cmd.Flags()
	o.several.Add(flags, "check")
	flags.BoolVar(&o.all, "all", false, "report all root causes, not only the first 20")
	command.AddOutput(flags, &o.format, "output format", "json", "yaml")
	return cmd
}

// run diagnoses the named objects, or all in a scope.
func run(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	if !o.several.Lists() && len(args) > 0 {
		return explain(a, cmd, o, args)
	}
	scope := diagnose.Scope{Causes: rootCausesShown}
	if o.all {
		scope.Causes = 0
	}
	var err error
	if scope.Kinds, err = o.several.Kinds(args); err != nil {
		return err
	}
	if scope.Labels, err = o.several.Selector(); err != nil {
		return err
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("namespace") && !o.several.AllNamespaces() {
		scope.Namespace = namespace
	} else {
		scope.Fallback = namespace
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	line := a.UI.Progress(a.Now, "checking")
	result, err := report.Diagnoser(a, client).Everything(ctx, scope)
	line.Done()
	if interrupted := context.Cause(cmd.Context()); interrupted != nil {
		return interrupted // a partial report could contain another root cause
	}
	if err != nil {
		return err
	}
	if err := checked(o, scope, result); err != nil {
		return err
	}
	commits := report.UnappliedCommits(ctx, result.Facts)
	if o.format != "" {
		err = a.Encode(o.format, encoded(result, commits))
	} else {
		err = printDiagnosis(a, result, objref.Ref{}, scope, commits)
	}
	return determined(err, result)
}

// checked returns an error if a scope contains no Flux resources.
func checked(o *options, scope diagnose.Scope, v diagnose.Result) error {
	switch {
	case v.Checked > 0:
		return nil
	case len(scope.Kinds) > 0 || scope.Labels != nil:
		noun := "Flux"
		if len(scope.Kinds) > 0 {
			noun = objref.JoinKinds(scope.Kinds)
		}
		return errors.New("no " + kinds.None(noun, o.several.Labels(), scope.Namespace, 0))
	case o.format == "" && scope.Namespace == "" && v.Uninstalled:
		return hint.Errorf("install Flux: flux bootstrap or flux install", "Flux is not installed: the cluster has no Flux resources and %s", strings.Join(v.Unknown, "; "))
	case scope.Namespace != "":
		return hint.Errorf("flux why -A checks all namespaces", "no Flux resources found in namespace %q", scope.Namespace)
	}
	return nil
}

// encoded returns the JSON and YAML output for a diagnosis.
func encoded(v diagnose.Result, commits report.Unapplied) report.Diagnosis {
	result := report.DiagnosisOf(v)
	result.Unapplied = commits.Report()
	return result
}

// determined returns the error that sets the exit code: 1 for a problem, 2 if
// a part could not be checked.
func determined(err error, v diagnose.Result) error {
	switch {
	case err != nil:
		return err
	case len(v.Causes) > 0:
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	case len(v.Unknown) > 0:
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	}
	return nil
}

func diagnosisOf(ctx context.Context, doctor diagnose.Diagnoser, ref objref.Ref) (diagnose.Result, error) {
	word, namespace, name := ref.Word, ref.Namespace, ref.Name
	if len(ref.Kinds) == 1 {
		v, err := doctor.Object(ctx, ref.Kinds[0], namespace, name)
		if apierrors.IsNotFound(err) {
			err = &objref.NotFoundError{Target: objref.Target{Kind: ref.Kinds[0], Namespace: namespace, Name: name}}
		}
		return v, err
	}
	v, err := doctor.Deployed(ctx, word, namespace, name)
	var unknown *kube.UnknownWordError
	if errors.As(err, &unknown) {
		return v, hint.Errorf(cmp.Or(objref.DidYouMean(word), "kubectl api-resources lists the resource types of the cluster"), "%w", err)
	}
	if apierrors.IsNotFound(err) {
		remedy := "no inventory contains it, and no event reports that it was pruned"
		if len(v.Unknown) > 0 {
			remedy = "could not check whether Flux has applied it: " + strings.Join(v.Unknown, "; ")
		}
		err = hint.Errorf(remedy, "%s/%s not found in %q namespace", word, name, namespace)
	}
	return v, err
}

// printDiagnosis prints the root causes, starting with those that block the most objects.
func printDiagnosis(a *app.App, v diagnose.Result, ref objref.Ref, scope diagnose.Scope, commits report.Unapplied) error {
	p := report.NewPage(a)
	p.Brief = len(v.Causes) > 1 && !a.Global.Verbose
	if ref.Name == "" && v.Problems > 1 {
		p.B.WriteString(p.Strong(output.Amount(v.Problems, "problem")+", "+output.Amount(v.RootCauses, "root cause")) + "\n\n")
	}
	for i, c := range v.Causes {
		if i > 0 {
			p.B.WriteString("\n")
		}
		p.Problem(c)
	}
	if more := v.RootCauses - len(v.Causes); more > 0 {
		p.B.WriteString("\n")
		p.Line(0, fmt.Sprintf("and %s: flux why --all", output.Amount(more, "more root cause")))
	}
	if len(v.Causes) == 0 {
		p.Line(0, nothingFound(v, ref, scope))
		p.Progress(v.Progress)
		for _, line := range report.FactLines(a, v.Facts) {
			p.Line(1, line)
		}
	}
	p.Section(report.UnappliedTitle, commits.Lines(a))
	p.Section("Could not check", v.Unknown)
	return a.Print(p.B.String())
}

// nothingFound returns the message for a diagnosis without problems.
func nothingFound(v diagnose.Result, ref objref.Ref, scope diagnose.Scope) string {
	what := output.Amount(v.Checked, "Flux resource")
	if scope.Namespace != "" {
		what += " in namespace " + scope.Namespace
	}
	switch {
	case ref.Name != "" && len(v.Progress) > 0 && len(v.Unknown) == 0:
		return fmt.Sprintf("No problem found so far: %s %s/%s is in progress.", ref.Word, ref.Namespace, ref.Name)
	case ref.Name != "" && len(v.Unknown) > 0:
		return fmt.Sprintf("No problem found with %s %s/%s, but not everything could be checked.", ref.Word, ref.Namespace, ref.Name)
	case ref.Name != "":
		return fmt.Sprintf("No problem found with %s %s/%s.", ref.Word, ref.Namespace, ref.Name)
	case len(v.Unknown) > 0:
		return fmt.Sprintf("No problem found with %s, but not everything could be checked.", what)
	}
	if len(v.Progress) > 0 {
		return fmt.Sprintf("No problem found so far with %s: %d in progress.", what, len(v.Progress))
	}
	return fmt.Sprintf("No problem found: %s are ready or suspended.", what)
}
