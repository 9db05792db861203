package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// blockedShown is how many of the objects that a cause holds up are named.
const blockedShown = 8

// rootCausesShown is how many root causes are reported in full without --all.
const rootCausesShown = 20

type whyOptions struct {
	allNamespaces bool
	all           bool
	format        string
}

func newWhy(a *app) *cobra.Command {
	o := &whyOptions{}
	cmd := &cobra.Command{
		Use:   "why [kind name]",
		Short: "Explain why a resource is not ready and how to fix it",
		Long: `Explain why a resource is not ready, or why a change is not applied yet, and how
to fix it. The report names the root cause, the dependency chain from the
resource to it, what else the root cause blocks, and the fix.

The resource can be a Flux resource or any object that Flux manages, for example
a Deployment. Without a resource, the Flux resources of all namespaces and the
controllers are checked; with --namespace, the Flux resources of that namespace.
Problems are grouped by root cause, those that block most first. The first 20
root causes are reported and the others counted, also in JSON and YAML: --all
reports all of them.

Of one resource, also what it does not report itself is checked: objects in its
inventory that were deleted or changed outside Flux (drift), whose deletion does
not finish, that hold values still encrypted by SOPS, or that another resource
applies as well; and notifications that are not delivered. If there is no
problem, the applied and the fetched revision are printed, and when the source is
fetched next. In a clone of the source, the commits that were fetched and not
applied are listed; nothing is fetched for that.

Exit codes: 0 if no problem was found, 1 if there is a problem, 2 if that could
not be determined. What could not be checked is listed. What has been reconciling
for less than a minute is listed as progress: it is no problem.

JSON and YAML have the fields healthy, looked (resources that were checked),
summary (problems, rootCauses, shown), cases, progress (cases that are no problem
yet), facts (the revisions behind the resource), unapplied (commits that are not
live) and unknown (what could not be checked). A case has the object, its root cause (code, message, details,
remedies), the chain of findings from the object to it, and the objects that it
blocks.`,
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
		ValidArgsFunction: a.completeObject,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.why(cmd, o, args) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "check the Flux resources of all namespaces")
	flags.BoolVar(&o.all, "all", false, "report all root causes, not only the first 20")
	flags.StringVarP(&o.format, "output", "o", "", "print the diagnosis as json or yaml")
	completeReportFormat(cmd)
	return cmd
}

func (a *app) why(cmd *cobra.Command, o *whyOptions, args []string) error {
	if err := checkReportFormat(o.format); err != nil {
		return err
	}
	ref, err := subjectWords(cmd, args)
	if err != nil {
		return err
	}
	if o.allNamespaces && ref.name != "" {
		return errors.New("a resource and --all-namespaces are mutually exclusive")
	}
	client, namespace, err := a.place(cmd)
	if err != nil {
		return err
	}
	scope := diagnose.Scope{Fallback: namespace, Cases: rootCausesShown}
	if cmd.Flags().Changed("namespace") && !o.allNamespaces {
		scope = diagnose.Scope{Namespace: namespace, Cases: rootCausesShown}
	}
	if o.all {
		scope.Cases = 0
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	ref.namespace = ref.in(namespace)
	line := a.ui.Progress(a.now, "checking")
	verdict, err := a.verdict(ctx, a.doctor(client), ref, scope)
	line.Done()
	if err != nil {
		return err
	}
	if scope.Namespace != "" && ref.name == "" && verdict.Looked == 0 {
		return hinted("flux why -A checks all namespaces", "no Flux resources found in namespace %q", namespace)
	}
	commits := unappliedCommits(ctx, verdict.Facts)
	if o.format != "" {
		report := verdictReportOf(verdict)
		report.Unapplied = commits.report()
		err = a.encode(o.format, report)
	} else {
		err = a.printVerdict(verdict, ref, scope, commits)
	}
	return determined(err, verdict)
}

// subjectWords reads an object from the words of a command line: KIND/NAME,
// KIND NAME or, as after other verbs, the family and the word of a kind and NAME.
func subjectWords(cmd *cobra.Command, args []string) (objectRef, error) {
	family := func(n int) bool { return len(args) == n && len(controllers.KindsNamed(args[0]+" "+args[1])) == 1 }
	switch {
	case family(2) && len(controllers.KindsNamed(args[0])) != 1:
		return objectRef{}, hinted(fmt.Sprintf("%s %s %s NAME", cmd.CommandPath(), args[0], args[1]), "a name is required")
	case len(args) == 3 && !family(3):
		return objectRef{}, hinted("write KIND NAME or KIND/NAME", "%q names no object", strings.Join(args, " "))
	case len(args) == 3:
		args = []string{args[0] + " " + args[1], args[2]}
	}
	return objectWords(args)
}

// determined is the end of a diagnosis: exit code 1 for a problem, 2 where there
// may be one that could not be seen.
func determined(err error, v diagnose.Verdict) error {
	switch {
	case err != nil:
		return err
	case len(v.Cases) > 0:
		return &exitCodeError{exitFailed}
	case len(v.Unknown) > 0:
		return &exitCodeError{exitUnanswered}
	}
	return nil
}

func (a *app) doctor(client *kube.Client) diagnose.Doctor {
	d := diagnose.Doctor{Client: client, Home: a.fluxNamespace(), Now: a.now()}
	d.Kustomizer, _ = a.kustomizer(remoteBases{}) // only a host can be wrong
	return d
}

// answered is the end of a command that has given its answer: its exit code
// reports whether what was asked about is as it should be.
func answered(err error, well bool) error {
	if err == nil && !well {
		return &exitCodeError{exitFailed}
	}
	return err
}

func (a *app) verdict(ctx context.Context, doctor diagnose.Doctor, ref objectRef, scope diagnose.Scope) (diagnose.Verdict, error) {
	word, namespace, name := ref.word, ref.namespace, ref.name
	if name == "" {
		return doctor.Everything(ctx, scope)
	}
	if len(ref.kinds) == 1 {
		v, err := doctor.Object(ctx, ref.kinds[0], namespace, name)
		if apierrors.IsNotFound(err) {
			err = &notFoundError{target: target{kind: ref.kinds[0], namespace: namespace, name: name}}
		}
		return v, err
	}
	v, err := doctor.Deployed(ctx, word, namespace, name)
	var unknown *kube.UnknownWordError
	if errors.As(err, &unknown) {
		return v, hinted("kubectl api-resources lists the resource types of the cluster", "%w", err)
	}
	if apierrors.IsNotFound(err) {
		hint := "it is in no inventory, and no event reports that it was pruned"
		if len(v.Unknown) > 0 {
			hint = "could not check whether Flux has applied it: " + strings.Join(v.Unknown, "; ")
		}
		err = hinted(hint, "%s/%s not found in %q namespace", word, name, namespace)
	}
	return v, err
}

// printVerdict writes the root causes, the one that blocks most first.
func (a *app) printVerdict(v diagnose.Verdict, ref objectRef, scope diagnose.Scope, commits unapplied) error {
	p := a.page()
	if ref.name == "" && v.Problems > 1 {
		p.b.WriteString(p.strong(amount(v.Problems, "problem")+", "+amount(v.RootCauses, "root cause")) + "\n\n")
	}
	for i, c := range v.Cases {
		if i > 0 {
			p.b.WriteString("\n")
		}
		p.whole(c)
	}
	if more := v.RootCauses - len(v.Cases); more > 0 {
		p.b.WriteString("\n")
		p.line(0, fmt.Sprintf("and %s: flux why --all", amount(more, "more root cause")))
	}
	if len(v.Cases) == 0 {
		p.line(0, nothingFound(v, ref, scope))
		p.progress(v.Progress)
		for _, line := range a.factLines(v.Facts) {
			p.line(1, line)
		}
	}
	p.section(unappliedTitle, commits.lines(a))
	p.section("Could not check", v.Unknown)
	return a.print(p.b.String())
}

// nothingFound says that no problem was found, and whether there may be one.
func nothingFound(v diagnose.Verdict, ref objectRef, scope diagnose.Scope) string {
	what := amount(v.Looked, "Flux resource")
	if scope.Namespace != "" {
		what += " in namespace " + scope.Namespace
	}
	switch {
	case ref.name != "" && len(v.Progress) > 0 && len(v.Unknown) == 0:
		return fmt.Sprintf("No problem so far with %s %s/%s, which is in progress.", ref.word, ref.namespace, ref.name)
	case ref.name != "" && len(v.Unknown) > 0:
		return fmt.Sprintf("No problem found with %s %s/%s, but not everything could be checked.", ref.word, ref.namespace, ref.name)
	case ref.name != "":
		return fmt.Sprintf("No problem found with %s %s/%s.", ref.word, ref.namespace, ref.name)
	case len(v.Unknown) > 0:
		return fmt.Sprintf("No problem found with %s, but not everything could be checked.", what)
	}
	if len(v.Progress) > 0 {
		return fmt.Sprintf("No problem so far with %s: %d in progress.", what, len(v.Progress))
	}
	return fmt.Sprintf("No problem found: %s are ready or suspended.", what)
}

// amount is a number with its noun.
func amount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// page is an answer on standard output.
func (a *app) page() *page {
	screen, _ := a.screen(false)
	p := &page{width: screen.Width, strong: func(text string) string { return text }}
	if screen.Colour {
		p.strong = ui.Strong
	}
	return p
}
