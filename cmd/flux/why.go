package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/internal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// blockedShown is how many of the objects that a cause holds up are named.
const blockedShown = 8

func newWhy(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "why [kind name]",
		Short: "Explain why a resource is not ready and how to fix it",
		Long: `Explain why a resource is not ready, or why a change is not applied yet, and how
to fix it. The report names the root cause, the dependency chain from the
resource to it, what else the root cause blocks, and the fix. Without a resource,
all Flux resources are checked.

The resource can be a Flux resource or any object that Flux manages, for example
a Deployment.

Exit codes: 0 if everything is healthy, 1 if there is a problem, 2 if that could
not be determined.`,
		Example: `  # Check all Flux resources
  flux why

  # Explain why a change is not live
  flux why kustomization my-app
  flux why deployment my-app -n apps
  flux why hr/my-app -n apps

  # Print the codes of the root causes
  flux why -o json | jq -r '.cases[].root.code'`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: a.completeObject,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.why(cmd, format, args) },
	}
	addReportFormat(cmd.Flags(), &format)
	completeReportFormat(cmd)
	return cmd
}

func (a *app) why(cmd *cobra.Command, format string, args []string) error {
	if err := checkReportFormat(format); err != nil {
		return err
	}
	ref, err := objectWords(args)
	if err != nil {
		return err
	}
	client, namespace, err := a.place(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	ref.namespace = ref.in(namespace)
	verdict, err := a.verdict(ctx, a.doctor(client), ref)
	if err != nil {
		return err
	}
	if format != "" {
		err = a.encode(format, verdictReportOf(verdict))
	} else {
		err = a.printVerdict(verdict, ref)
	}
	return answered(err, len(verdict.Cases) == 0)
}

func (a *app) doctor(client *kube.Client) diagnose.Doctor {
	return diagnose.Doctor{Client: client, Home: a.fluxNamespace(), Now: a.now()}
}

// answered is the end of a command that has given its answer: its exit code
// tells whether all is well.
func answered(err error, well bool) error {
	if err == nil && !well {
		return &exitCodeError{exitFailed}
	}
	return err
}

func (a *app) verdict(ctx context.Context, doctor diagnose.Doctor, ref objectRef) (diagnose.Verdict, error) {
	word, namespace, name := ref.word, ref.namespace, ref.name
	if name == "" {
		return doctor.Everything(ctx)
	}
	if len(ref.kinds) == 1 {
		v, err := doctor.Object(ctx, ref.kinds[0], namespace, name)
		if apierrors.IsNotFound(err) {
			err = &notFoundError{target{kind: ref.kinds[0], namespace: namespace, name: name}}
		}
		return v, err
	}
	v, err := doctor.Deployed(ctx, word, namespace, name)
	var unknown *kube.UnknownWordError
	if errors.As(err, &unknown) {
		return v, hinted("kubectl api-resources lists what there is", "%w", err)
	}
	if apierrors.IsNotFound(err) {
		err = hinted("neither is it in the inventory of anything, nor do events tell that it was pruned", "%s/%s not found in %q namespace", word, name, namespace)
	}
	return v, err
}

// printVerdict writes the causes, the one that holds up most first.
func (a *app) printVerdict(v diagnose.Verdict, ref objectRef) error {
	for _, text := range v.Unknown {
		a.ui.Warning("%s", text)
	}
	if len(v.Cases) == 0 {
		if ref.name == "" && len(v.Unknown) > 0 {
			return a.printf("Nothing wrong was found with %d objects of Flux, but not everything could be looked at.\n", v.Looked)
		}
		if ref.name == "" {
			return a.printf("All is well: %d objects of Flux are ready or suspended.\n", v.Looked)
		}
		return a.printf("All is well with %s %s/%s.\n", ref.word, ref.namespace, ref.name)
	}
	p := a.page()
	for i, c := range v.Cases {
		if i > 0 {
			p.b.WriteString("\n")
		}
		p.whole(c)
	}
	return a.printf("%s", p.b.String())
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

// verdictReport is what why tells a script.
type verdictReport struct {
	Healthy bool         `json:"healthy"`
	Looked  int          `json:"looked"`
	Cases   []caseReport `json:"cases"`
	Unknown []string     `json:"unknown,omitempty"`
}

type caseReport struct {
	Object objectName      `json:"object"`
	Root   findingReport   `json:"root"`
	Chain  []findingReport `json:"chain"`
	Blocks []objectName    `json:"blocks"`
}

type findingReport struct {
	Object   objectName `json:"object"`
	Code     string     `json:"code"`
	Message  string     `json:"message"`
	Details  []string   `json:"details,omitempty"`
	Remedies []string   `json:"remedies,omitempty"`
}

func verdictReportOf(v diagnose.Verdict) verdictReport {
	r := verdictReport{Healthy: len(v.Cases) == 0, Looked: v.Looked, Cases: []caseReport{}, Unknown: v.Unknown}
	for _, c := range v.Cases {
		report := caseReport{Object: targetName(c.Object), Root: findingReportOf(c.Root), Blocks: []objectName{}}
		for _, f := range c.Chain {
			report.Chain = append(report.Chain, findingReportOf(f))
		}
		for _, t := range c.Blocks {
			report.Blocks = append(report.Blocks, targetName(t))
		}
		r.Cases = append(r.Cases, report)
	}
	return r
}

func findingReportOf(f diagnose.Finding) findingReport {
	r := findingReport{Object: targetName(f.Object), Code: f.Code, Message: redact.Text(f.Message)}
	for _, detail := range f.Details {
		r.Details = append(r.Details, redact.Text(detail))
	}
	for _, remedy := range f.Remedies {
		r.Remedies = append(r.Remedies, redact.Text(remedy))
	}
	return r
}

func targetName(t controllers.Target) objectName {
	k, _ := controllers.FindKind(t.Kind)
	return objectName{k.Group, t.Kind, t.Namespace, t.Name}
}
