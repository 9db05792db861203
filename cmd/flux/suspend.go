package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

type suspendOptions struct {
	targets targetOptions
	reason  string
	format  string
}

func newSuspend(a *app) *cobra.Command {
	o := &suspendOptions{}
	cmd := a.multiply(verb{
		name: "suspend", applies: controllers.Suspend,
		short: "Suspend the reconciliation of resources",
		of:    "Suspend the reconciliation of %s objects",
		example: `  # Suspend one, or several
  flux suspend %[1]s my-app
  flux suspend %[1]s my-app my-api

  # Give a reason: flux get -o wide shows it with the author
  flux suspend %[1]s my-app --reason "database migration until Monday"

  # Suspend all of a namespace, or those of a team everywhere
  flux suspend %[1]s --all -n apps
  flux suspend %[1]s -l team=blue -A

  # Print the result for each object
  flux suspend %[1]s --all -o json | jq -r '.[] | select(.error) | .name'`,
		examples: `  # Suspend objects of several kinds
  flux suspend ks/my-app hr/my-app
  flux suspend ks,hr --all -n apps

  # Suspend everything in the cluster, and name what failed
  flux suspend all -A --reason "change freeze" -o json | jq -r '.[] | select(.error) | .name'`,
		flags: func(fs *pflag.FlagSet) {
			o.targets.add(fs, "suspend")
			fs.StringVar(&o.reason, "reason", "", "why, for those who find the object suspended; resume removes it")
			addResultFormat(fs, &o.format)
		},
		run: func(cmd *cobra.Command, s selection) error { return a.suspend(cmd, o, s) },
	})
	completeFlag(cmd, "reason", cobra.NoFileCompletions)
	completeResultFormat(cmd)
	return cmd
}

// suspend looks at each object before it changes it: one that is suspended
// already keeps what it says about why and by whom. Who the user is, is asked
// while the objects are looked at, so that it costs no waiting.
func (a *app) suspend(cmd *cobra.Command, o *suspendOptions, s selection) error {
	if err := checkResultFormat(o.format); err != nil {
		return err
	}
	if err := o.targets.on(s).check(cmd, s); err != nil {
		return err
	}
	client, err := a.cluster()
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	user, stop := a.askUser(ctx, client)
	defer stop()
	c, err := a.targets(ctx, cmd, o.targets, s)
	if err != nil {
		return err
	}
	r := newResults(c.targets)
	failed := a.each(c.targets, func(t target) error {
		result, err := a.suspendOne(ctx, client, o.reason, t, user, len(c.targets) > 1)
		r.set(t, result, err)
		return err
	})
	return errors.Join(a.printResults(o.format, r), failed, c.incomplete)
}

func (a *app) suspendOne(
	ctx context.Context, client *kube.Client, reason string, t target, user func() string, many bool,
) (result string, err error) {
	noun := t.kind.Noun()
	a.ui.Action("suspending %s %s in %s namespace", noun, t.name, t.namespace)
	if err := t.read(ctx, client); err != nil {
		return "", err
	}
	already := t.kind.Suspension.Is(t.object)
	if already && reason == "" {
		a.ui.Success("%s is already suspended%s", shown(t, many), noted(t.object))
		return resultUnchanged, nil
	}
	if err := a.writeSuspension(ctx, client, t, reason, user()); err != nil {
		return "", err
	}
	switch {
	case already:
		a.ui.Success("%s was already suspended; its reason is now: %s", shown(t, many), reason)
	case many:
		a.ui.Success("%s suspended", shown(t, many))
	default:
		a.ui.Success("%s suspended", noun)
	}
	return resultSuspended, nil
}

func noted(o controllers.Object) string {
	if note := controllers.SuspensionReason(o); note != "" {
		return ": " + note
	}
	return ""
}

func (a *app) writeSuspension(ctx context.Context, client *kube.Client, t target, reason, user string) error {
	change := t.kind.Suspension.Change(true)
	annotate(change, map[string]any{
		controllers.SuspendReasonAnnotation: orNull(reason),
		controllers.SuspendedByAnnotation:   orNull(user),
	})
	err := client.With(ctx, t.kind, func(r kube.Resource) error {
		_, err := client.Merge(ctx, r, t.namespace, t.name, change)
		return err
	})
	return missing(err, t)
}

// orNull is what removes an annotation by a merge patch where there is nothing to say.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// annotate adds annotations to a merge patch, which may have some.
func annotate(change, annotations map[string]any) {
	meta, ok := change["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		change["metadata"] = meta
	}
	all, ok := meta["annotations"].(map[string]any)
	if !ok {
		all = map[string]any{}
		meta["annotations"] = all
	}
	for key, value := range annotations {
		all[key] = value
	}
}

// userTime bounds how long a change waits for the answer who the user is.
const userTime = 2 * time.Second

// askUser starts a request for the user's name. user waits for the response;
// without one in time, or from a server that does not support the request, it
// returns the user's name in the kubeconfig. stop ends the request.
func (a *app) askUser(ctx context.Context, client *kube.Client) (user func() string, stop func()) {
	ctx, cancel := context.WithTimeout(ctx, userTime)
	var name string
	done := make(chan struct{})
	go func() {
		defer close(done)
		// A user who may not send the request has a name in the kubeconfig.
		name, _ = client.WhoAmI(ctx)
	}()
	user = func() string {
		<-done
		return cmp.Or(name, a.global.kube.User())
	}
	stop = func() {
		cancel()
		<-done
	}
	return user, stop
}
