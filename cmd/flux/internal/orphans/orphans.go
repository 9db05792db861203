// Package orphans implements the orphans command.
package orphans

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/treeview"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/orphans"
)

// NewCommand returns the orphans command.
func NewCommand(a *app.App) *cobra.Command {
	var format string
	several := &kinds.Several{}
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "List objects that Flux has applied but no longer manages",
		Long: `List objects that Flux has applied but no longer manages: their owner labels
refer to a Kustomization, HelmRelease, ResourceSet or FluxInstance that does not
exist, or that does not list them in its inventory. Flux does not delete these
objects; -o wide shows the reasons and the deletion commands. Nothing is changed.

All kinds in the cluster are checked. --all-namespaces includes cluster-scoped
objects. Objects with owner references, objects that are being deleted, and
objects that other controllers created, such as Endpoints with labels of their
Service, are not listed. If the owner is not ready, is being deleted, has no
inventory or applies objects to another cluster, the result is undetermined.

Objects that Flux in another cluster applies to this one are listed, because
their owner does not exist here.`,
		Annotations: command.Exits{
			clierr.ExitSuccess:      "there are no orphans, except objects kept by annotations",
			clierr.ExitFailed:       "there are orphans",
			clierr.ExitUndetermined: "undetermined: a kind could not be listed, the inventory of an owner is incomplete, or the command line is invalid",
		}.Annotations(),
		Example: `  # List the orphans in a namespace, or in the cluster
  flux orphans -n apps
  flux orphans -A

  # Show why they exist, and the commands that delete them
  flux orphans -A -o wide

  # List the orphans of a team
  flux orphans -A -l team=blue

  # Print the commands that delete orphans, except kept ones
  flux orphans -A -o json | jq -r '.orphans[] | select(.kept | not) | .remove'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, several, format) })
		},
	}
	several.Add(cmd.Flags(), "list")
	command.AddOutput(cmd.Flags(), &format, "output format; wide adds details and the commands that delete the objects", "wide", "json", "yaml", "name")
	return cmd
}

func run(a *app.App, cmd *cobra.Command, several *kinds.Several, format string) error {
	if _, err := several.Selector(); err != nil {
		return err
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	if several.AllNamespaces() {
		namespace = ""
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	line := a.UI.Progress(a.Now, "listing objects")
	result, err := orphans.Find(ctx, client, orphans.Options{Namespace: namespace, Labels: several.Labels(), Progress: line.Count})
	line.Done()
	if errors.Is(err, kube.ErrNotInstalled) {
		err = kinds.NotServed(controllers.Kinds)
	}
	if err != nil {
		return err
	}
	if err := write(a, format, result); err != nil {
		return err
	}
	return summary(a, result, namespace)
}

// document is the JSON and YAML output.
type document struct {
	Orphans []orphans.Orphan `json:"orphans"`
	Unknown []string         `json:"unknown,omitempty"`
}

func write(a *app.App, format string, r *orphans.Result) error {
	switch format {
	case "json", "yaml":
		result := document{Orphans: append([]orphans.Orphan{}, r.Orphans...), Unknown: r.Undetermined}
		for _, gap := range r.Gaps {
			result.Unknown = append(result.Unknown, observe.Unread(gap.Resource, gap.Err))
		}
		return a.Encode(format, result)
	case "name":
		for _, o := range r.Orphans {
			if err := a.Printf("%s\n", name(o)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(r.Orphans) == 0 {
		return nil
	}
	table := output.Table{Headers: []string{"NAMESPACE", "NAME", "OWNER", "AGE", "REASON"}}
	if format == "wide" {
		table.Headers = append(table.Headers, "REMOVE")
	}
	for _, o := range r.Orphans {
		row := []string{o.Object.Namespace, name(o), o.Owner.String(), duration.HumanDuration(a.Now().Sub(o.Created)), reason(o, format == "wide")}
		if format == "wide" {
			row = append(row, o.Remove)
		}
		table.Rows = append(table.Rows, row)
	}
	return a.Table(table, app.TableStyle{Fold: format == "wide"})
}

// name returns the kind with its group and the name, as kubectl prints them.
func name(o orphans.Orphan) string {
	kind := strings.ToLower(o.Object.Kind)
	if o.Object.Group != "" {
		kind += "." + o.Object.Group
	}
	return kind + "/" + o.Object.Name
}

// reason returns why an object is an orphan and which annotation keeps it, with details.
func reason(o orphans.Orphan, details bool) string {
	parts := []string{o.Reason.String()}
	if o.Kept != "" {
		parts = append(parts, "kept by "+o.Kept)
	}
	if details {
		parts = append(parts, o.Details...)
	}
	return strings.Join(parts, "; ")
}

// summary prints the result and the checks that failed, and returns the error that sets the exit
// code.
func summary(a *app.App, r *orphans.Result, namespace string) error {
	kept := 0
	for _, o := range r.Orphans {
		if o.Kept != "" {
			kept++
		}
	}
	where := "the cluster"
	if namespace != "" {
		where = fmt.Sprintf("namespace %q", namespace)
	}
	incomplete := treeview.ReportGaps(a, r.Gaps)
	for _, text := range r.Undetermined {
		a.UI.Warning("not checked: %s", text)
	}
	checked := output.Amount(r.Checked, "applied object")
	switch found := len(r.Orphans) - kept; {
	case found > 0:
		a.UI.Failure("%s among %s in %s", output.Amount(found, "orphan"), checked, where)
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	case incomplete != nil || len(r.Gaps)+len(r.Undetermined) > 0:
		a.UI.Failure("no orphans found in %s, but not everything could be checked: exiting with 2", where)
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	}
	text := "no orphans among %s in %s"
	if kept > 0 {
		text = fmt.Sprintf("no orphans among %%s in %%s, except %s kept by annotations", output.Amount(kept, "object"))
	}
	a.UI.Success(text, checked, where)
	return nil
}
