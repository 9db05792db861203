package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

type suspendOptions struct {
	targets targetOptions
	reason  string
}

func newSuspend(a *app) *cobra.Command {
	o := &suspendOptions{}
	cmd := a.multiply(verb{
		name: "suspend", applies: controllers.Suspend,
		short: "Suspend objects, so that their controllers leave them alone",
		of:    "Suspend %s objects",
		example: `  # Suspend one, or several
  flux suspend %[1]s my-app
  flux suspend %[1]s my-app my-api

  # Give a reason: flux get -o wide shows it with the author
  flux suspend %[1]s my-app --reason "database migration until Monday"

  # Suspend all of a namespace, or those of a team everywhere
  flux suspend %[1]s --all -n apps
  flux suspend %[1]s -l team=blue -A`,
		flags: func(fs *pflag.FlagSet) {
			o.targets.add(fs, "suspend")
			fs.StringVar(&o.reason, "reason", "", "why, for those who find the object suspended; resume removes it")
		},
		run: func(cmd *cobra.Command, k controllers.Kind, names []string) error {
			return a.suspend(cmd, o, k, names)
		},
	})
	completeFlag(cmd, "reason", cobra.NoFileCompletions)
	return cmd
}

// suspend looks at each object before it changes it: one that is suspended
// already keeps what it says about why and by whom. Who the user is, is asked
// while the objects are looked at, so that it costs no waiting.
func (a *app) suspend(cmd *cobra.Command, o *suspendOptions, k controllers.Kind, names []string) error {
	if err := o.targets.check(cmd, k, names); err != nil {
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
	targets, err := a.targets(ctx, cmd, &o.targets, k, names)
	if err != nil {
		return err
	}
	return a.each(targets, func(t target) error {
		a.ui.Action("suspending %s %s in %s namespace", k.Noun(), t.name, t.namespace)
		if err := t.read(ctx, client); err != nil {
			return err
		}
		already := k.Suspension.Is(t.object)
		if already && o.reason == "" {
			a.ui.Success("%s %s is already suspended%s", k.Noun(), t.name, noted(t.object))
			return nil
		}
		if err := a.writeSuspension(ctx, client, t, o.reason, user()); err != nil {
			return err
		}
		if already {
			a.ui.Success("%s %s was already suspended; its reason is now: %s", k.Noun(), t.name, o.reason)
			return nil
		}
		a.ui.Success("%s suspended", k.Noun())
		return nil
	})
}

func noted(o controllers.Object) string {
	if note := controllers.SuspendNote(o); note != "" {
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

// askUser starts asking the server who the user is. The first function waits
// for the answer; where there is none in time, or the server is too old to
// tell, it is the user's name in the kubeconfig. The second ends the asking.
func (a *app) askUser(ctx context.Context, client *kube.Client) (user func() string, stop func()) {
	ctx, cancel := context.WithTimeout(ctx, userTime)
	var name string
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Whoever may not ask is still somebody: the kubeconfig tells.
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
