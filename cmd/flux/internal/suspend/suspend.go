// Package suspend implements the suspend command.
package suspend

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

type options struct {
	reason string
	// until is the time at which the suspension expires: the flag value, and after check the time
	// in RFC 3339.
	until string
	// user returns the user's name.
	user func() string
}

// NewCommand returns the suspend command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "suspend", Applies: controllers.Suspend,
		Short: "Suspend the reconciliation of resources",
		Of:    "Suspend the reconciliation of %s objects",
		OfKind: []kinds.Example{
			{Text: `  # Suspend one or several objects
  flux suspend %[1]s %[2]s
  flux suspend %[1]s %[2]s %[3]s`},
			{Text: `  # Set a reason, which flux get -o wide shows with the author
  flux suspend %[1]s %[2]s --reason "maintenance until Monday"`},
			{Text: `  # Suspend an object for two hours, after which flux resume --expired resumes it
  flux suspend %[1]s %[2]s --until 2h`},
			{Text: `  # Suspend all objects in a namespace, or by label in all namespaces
  flux suspend %[1]s --all -n apps
  flux suspend %[1]s -l team=blue -A`},
			{Text: `  # Print the result for each object
  flux suspend %[1]s --all -o json | jq -r '.[] | select(.error) | .name'`},
		},
		Examples: `  # Suspend objects of several kinds
  flux suspend ks/my-app hr/my-app
  flux suspend ks,hr --all -n apps

  # Suspend all objects in the cluster, and print the names of failed ones
  flux suspend all -A --reason "change freeze" -o json | jq -r '.[] | select(.error) | .name'`,
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&o.reason, "reason", "", "reason for the suspension, shown by get -o wide and removed by resume")
			fs.StringVar(&o.until, "until", "", "time in RFC 3339, or duration such as 2h, after which flux resume --expired resumes the objects")
		},
		Action: &kinds.Action{
			Selects: "suspend", Explicit: true, Output: "print the result for each object", Formats: []string{"json", "yaml", "name"},
			Check: func(act *kinds.Act) (err error) {
				o.until, err = reconcile.Expiration(o.until, act.App.Now())
				return err
			},
			Begin: o.requestUser,
			Do: func(ctx context.Context, act *kinds.Act) error {
				return act.Each(func(t *objref.Target) (string, error) { return o.suspend(ctx, act, t) })
			},
		},
	})
	complete.Flag(cmd, "reason", cobra.NoFileCompletions)
	complete.Flag(cmd, "until", cobra.NoFileCompletions)
	return cmd
}

// suspend reads the object first, because a suspended object keeps its reason and author unless there is a
// new reason. The expiration is always replaced.
func (o *options) suspend(ctx context.Context, act *kinds.Act, t *objref.Target) (result string, err error) {
	ui, noun := act.App.UI, t.Kind.Noun()
	ui.Action("suspending %s %s in %s namespace", noun, t.Name, t.Namespace)
	if err := t.Read(ctx, act.Client); err != nil {
		return "", err
	}
	already := t.Kind.Suspension.Is(t.Object)
	if already && o.reason == "" && o.until == "" {
		ui.Success("%s is already suspended%s", report.Label(*t, act.Many()), report.SuspendNote(t.Object))
		return report.ResultUnchanged, nil
	}
	change := t.Kind.Suspension.Change(true)
	controllers.Annotate(change, map[string]any{controllers.SuspendedUntilAnnotation: orNull(o.until)})
	if !already || o.reason != "" {
		controllers.Annotate(change, map[string]any{
			controllers.SuspendReasonAnnotation: orNull(o.reason),
			controllers.SuspendedByAnnotation:   orNull(o.user()),
		})
	}
	if _, err := t.Patch(ctx, act.Client, change); err != nil {
		return "", err
	}
	expires := ""
	if o.until != "" {
		expires = "; the suspension expires at " + o.until
	}
	switch {
	case already && o.reason == "":
		ui.Success("%s was already suspended%s", report.Label(*t, act.Many()), expires)
	case already:
		ui.Success("%s was already suspended; its reason is now: %s%s", report.Label(*t, act.Many()), o.reason, expires)
	case act.Many():
		ui.Success("%s suspended%s", report.Label(*t, true), expires)
	default:
		ui.Success("%s suspended%s", noun, expires)
	}
	return report.ResultSuspended, nil
}

// orNull returns nil for an empty text, which removes the annotation in a merge patch.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// requestUser requests the user name and returns a function that ends the request. If the server does not
// respond in time or does not support the request, the name of the kubeconfig user is used.
func (o *options) requestUser(ctx context.Context, act *kinds.Act) (end func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, act.App.BriefTimeout)
	var name string
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Without permission for this request, the name of the kubeconfig user is used.
		name, _ = act.Client.Access().WhoAmI(ctx)
	}()
	o.user = func() string {
		<-done
		return cmp.Or(name, act.App.Global.Kube.User())
	}
	return func() {
		cancel()
		<-done
	}, nil
}
