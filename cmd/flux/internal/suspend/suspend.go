// Package suspend implements the suspend command.
package suspend

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/reconciler"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

type options struct {
	targets kinds.TargetOptions
	reason  string
	format  string
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
			{Text: `  # Give a reason: flux get -o wide shows it with the author
  flux suspend %[1]s %[2]s --reason "maintenance until Monday"`},
			{Text: `  # Suspend all objects in a namespace, or by label in all namespaces
  flux suspend %[1]s --all -n apps
  flux suspend %[1]s -l team=blue -A`},
			{Text: `  # Print the result for each object
  flux suspend %[1]s --all -o json | jq -r '.[] | select(.error) | .name'`},
		},
		Examples: `  # Suspend objects of several kinds
  flux suspend ks/my-app hr/my-app
  flux suspend ks,hr --all -n apps

  # Suspend all objects in the cluster, and print the names of those that failed
  flux suspend all -A --reason "change freeze" -o json | jq -r '.[] | select(.error) | .name'`,
		Flags: func(fs *pflag.FlagSet) {
			o.targets.Add(fs, "suspend")
			fs.StringVar(&o.reason, "reason", "", "reason of the suspension, shown by get -o wide and removed by resume")
			command.AddOutput(fs, &o.format, "print the result for each object", "json", "yaml", "name")
		},
		Run: func(cmd *cobra.Command, s kinds.Selection) error { return run(a, cmd, o, s) },
	})
	complete.Flag(cmd, "reason", cobra.NoFileCompletions)
	return cmd
}

// run reads each object before it changes it: a suspended object keeps its reason
// and author. The name of the user is requested at the same time.
func run(a *app.App, cmd *cobra.Command, o *options, s kinds.Selection) error {
	if err := o.targets.With(s).Check(cmd, s); err != nil {
		return err
	}
	client, err := a.Client()
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	user, stop := askUser(ctx, a, client)
	defer stop()
	c, err := kinds.Targets(ctx, a, cmd, o.targets, s)
	if err != nil {
		return err
	}
	r := report.NewResults(c.Targets)
	failed := kinds.Each(a, c.Targets, func(t *objref.Target) error {
		result, err := suspend(ctx, a, client, o.reason, *t, user, len(c.Targets) > 1)
		r.Set(*t, result, err)
		return err
	})
	return errors.Join(report.PrintResults(a, o.format, r), failed, c.Incomplete)
}

func suspend(
	ctx context.Context, a *app.App, client *kube.Client, reason string, t objref.Target, user func() string, many bool,
) (result string, err error) {
	noun := t.Kind.Noun()
	a.UI.Action("suspending %s %s in %s namespace", noun, t.Name, t.Namespace)
	if err := t.Read(ctx, client); err != nil {
		return "", err
	}
	already := t.Kind.Suspension.Is(t.Object)
	if already && reason == "" {
		a.UI.Success("%s is already suspended%s", report.Label(t, many), report.SuspendNote(t.Object))
		return report.ResultUnchanged, nil
	}
	if err := writeSuspension(ctx, client, t, reason, user()); err != nil {
		return "", err
	}
	switch {
	case already:
		a.UI.Success("%s was already suspended; its reason is now: %s", report.Label(t, many), reason)
	case many:
		a.UI.Success("%s suspended", report.Label(t, many))
	default:
		a.UI.Success("%s suspended", noun)
	}
	return report.ResultSuspended, nil
}

func writeSuspension(ctx context.Context, client *kube.Client, t objref.Target, reason, user string) error {
	change := t.Kind.Suspension.Change(true)
	reconciler.Annotate(change, map[string]any{
		controllers.SuspendReasonAnnotation: orNull(reason),
		controllers.SuspendedByAnnotation:   orNull(user),
	})
	err := client.WithServedVersion(ctx, t.Kind, func(r kube.Resource) error {
		_, err := client.MergePatch(ctx, r, t.Namespace, t.Name, change)
		return err
	})
	return objref.NotFound(err, t)
}

// orNull returns nil for an empty text, which removes the annotation in a merge patch.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// userTime is the maximum time of the request for the name of the user.
const userTime = 2 * time.Second

// askUser starts a request for the user's name. user waits for the response;
// without one in time, or from a server that does not support the request, it
// returns the user's name in the kubeconfig. stop ends the request.
func askUser(ctx context.Context, a *app.App, client *kube.Client) (user func() string, stop func()) {
	ctx, cancel := context.WithTimeout(ctx, userTime)
	var name string
	done := make(chan struct{})
	go func() {
		defer close(done)
		// A user who may not send the request has a name in the kubeconfig.
		name, _ = client.Access().WhoAmI(ctx)
	}()
	user = func() string {
		<-done
		return cmp.Or(name, a.Global.Kube.User())
	}
	stop = func() {
		cancel()
		<-done
	}
	return user, stop
}
