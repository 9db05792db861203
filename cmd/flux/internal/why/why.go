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
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// rootCausesShown is how many root causes are reported in full without --all.
const rootCausesShown = 20

type options struct {
	allNamespaces bool
	all           bool
	format        string
}

// NewCommand returns the why command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "why [kind name]",
		Short: "Explain why a resource is not ready and how to fix it",
		Long: `Explain why a resource is not ready, or why a change is not applied yet, and how
to fix it. The report has the root cause, the dependency chain from the resource
to it, the other resources that it blocks, and the fix.

Selection:
  The resource is a Flux resource or any object that Flux manages, for example a
  Deployment. Without a resource, all Flux resources and the controllers are
  checked, or with --namespace the Flux resources of one namespace.
  See "flux help diagnosis".

Output:
  The first 20 root causes are reported and the others counted, also in JSON and
  YAML; --all reports all. Checks that were not possible are listed.`,
		Annotations: command.Exits{
			clierr.ExitSuccess: "no problem was found; resources whose reconciliation or deletion has just started are not problems",
			clierr.ExitFailed:  "there is a problem",
			clierr.ExitUndetermined: "undetermined: the object does not exist, the cluster does not respond, the command line is invalid, or no problem was " +
				"found but relevant objects could not be read",
		}.Annotations(),
		Example: `  # Check all Flux resources
  flux why

  # Check the Flux resources of a namespace
  flux why -n apps

  # Explain why a change is not live
  flux why kustomization my-app
  flux why deployment my-app -n apps
  flux why hr/my-app -n apps
  flux why image update my-app

  # Print the codes of the root causes
  flux why --all -o json | jq -r '.cases[].root.code'`,
		Args:              cobra.MaximumNArgs(3),
		ValidArgsFunction: complete.Object(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, args) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "check the Flux resources of all namespaces")
	flags.BoolVar(&o.all, "all", false, "report all root causes, not only the first 20")
	command.AddOutput(flags, &o.format, "output format", "json", "yaml")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	ref, err := objref.ParseCommandLine(cmd.CommandPath(), args)
	if err != nil {
		return err
	}
	if o.allNamespaces && ref.Name != "" {
		return errors.New("a resource and --all-namespaces are mutually exclusive")
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	scope := diagnose.Scope{Fallback: namespace, Causes: rootCausesShown}
	if cmd.Flags().Changed("namespace") && !o.allNamespaces {
		scope = diagnose.Scope{Namespace: namespace, Causes: rootCausesShown}
	}
	if o.all {
		scope.Causes = 0
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	ref.Namespace = ref.NamespaceOr(namespace)
	line := a.UI.Progress(a.Now, "checking")
	verdict, err := verdict(ctx, report.Diagnoser(a, client), ref, scope)
	line.Done()
	if interrupted := context.Cause(cmd.Context()); interrupted != nil {
		return interrupted // a report of what was read until then could name another root cause
	}
	if err != nil {
		return err
	}
	if o.format == "" && scope.Namespace == "" && ref.Name == "" && verdict.Checked == 0 && verdict.Uninstalled {
		return hint.Errorf("install Flux: flux bootstrap or flux install", "Flux is not installed: the cluster has no Flux resources and %s", strings.Join(verdict.Unknown, "; "))
	}
	if scope.Namespace != "" && ref.Name == "" && verdict.Checked == 0 {
		return hint.Errorf("flux why -A checks all namespaces", "no Flux resources found in namespace %q", namespace)
	}
	commits := report.UnappliedCommits(ctx, verdict.Facts)
	if o.format != "" {
		report := report.VerdictOf(verdict)
		report.Unapplied = commits.Report()
		err = a.Encode(o.format, report)
	} else {
		err = printVerdict(a, verdict, ref, scope, commits)
	}
	return determined(err, verdict)
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

func verdict(ctx context.Context, doctor diagnose.Diagnoser, ref objref.Ref, scope diagnose.Scope) (diagnose.Result, error) {
	word, namespace, name := ref.Word, ref.Namespace, ref.Name
	if name == "" {
		return doctor.Everything(ctx, scope)
	}
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
		remedy := "it is in no inventory, and no event reports that it was pruned"
		if len(v.Unknown) > 0 {
			remedy = "could not check whether Flux has applied it: " + strings.Join(v.Unknown, "; ")
		}
		err = hint.Errorf(remedy, "%s/%s not found in %q namespace", word, name, namespace)
	}
	return v, err
}

// printVerdict prints the root causes, those that block the most objects
// first.
func printVerdict(a *app.App, v diagnose.Result, ref objref.Ref, scope diagnose.Scope, commits report.Unapplied) error {
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
		return fmt.Sprintf("No problem so far with %s %s/%s, which is in progress.", ref.Word, ref.Namespace, ref.Name)
	case ref.Name != "" && len(v.Unknown) > 0:
		return fmt.Sprintf("No problem found with %s %s/%s, but not everything could be checked.", ref.Word, ref.Namespace, ref.Name)
	case ref.Name != "":
		return fmt.Sprintf("No problem found with %s %s/%s.", ref.Word, ref.Namespace, ref.Name)
	case len(v.Unknown) > 0:
		return fmt.Sprintf("No problem found with %s, but not everything could be checked.", what)
	}
	if len(v.Progress) > 0 {
		return fmt.Sprintf("No problem so far with %s: %d in progress.", what, len(v.Progress))
	}
	return fmt.Sprintf("No problem found: %s are ready or suspended.", what)
}
