package kinds

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
)

// Action implements a verb that acts on the selected objects. It adds the selection flags and --output,
// connects to the cluster, sets the timeout, selects the objects and prints the results.
type Action struct {
	// Selects is the verb in the help of the selection flags, such as "resume".
	Selects string
	// Reading is set for a read-only verb.
	Reading bool
	// Explicit verbs require --all or --all-namespaces even with the argument "all".
	Explicit bool
	// Output is the help of --output without the formats, and Default its default.
	Output  string
	Formats []string
	Default string
	// Check returns an error for invalid flags before any request is sent. It may change the selection. It
	// may be nil.
	Check func(*Act) error
	// Begin starts tasks that run while the objects are listed, and returns a function that ends them. It may
	// be nil.
	Begin func(ctx context.Context, act *Act) (end func(), err error)
	// Do acts on the chosen objects.
	Do func(ctx context.Context, act *Act) error
}

// Act is one execution of an Action.
type Act struct {
	App    *app.App
	Client *kube.Client
	// User is the context of the command, without --timeout.
	User context.Context
	// Selection is the selection of the command line, and Options are the selection flags.
	Selection Selection
	Options   TargetOptions
	// Unlisted is set if Do lists the objects itself, and MayBeEmpty if an empty selection is not an error.
	Unlisted, MayBeEmpty bool
	// Format is the value of --output.
	Format string

	// Targets are the selected objects, from the command line or, if Listed is set, from Lists. Named
	// objects are not read; the request of the verb reports missing ones.
	Targets []objref.Target
	Listed  bool
	Lists   []List
	// Namespace is the namespace of the lists, "" for all namespaces.
	Namespace string
	// Incomplete is the error if some kinds could not be listed.
	Incomplete error

	results *report.Results
	// encoded is the JSON and YAML output, and changed are the objects that "name" prints.
	encoded any
	changed []objref.Target
}

// attach sets the flags and the run function of a verb with an action.
func (v *Verb) attach(a *app.App) {
	action, own := v.Action, v.Flags
	targets := TargetOptions{explicit: action.Explicit}
	format := action.Default
	v.Flags = func(fs *pflag.FlagSet) {
		targets.add(fs, action.Selects, action.Reading)
		command.AddOutput(fs, &format, action.Output, action.Formats...)
		if own != nil {
			own(fs)
		}
	}
	v.Run = func(cmd *cobra.Command, s Selection) error {
		return action.run(cmd, &Act{App: a, User: cmd.Context(), Selection: s, Options: targets, Format: format})
	}
}

func (a *Action) run(cmd *cobra.Command, act *Act) error {
	if a.Check != nil {
		if err := a.Check(act); err != nil {
			return err
		}
	}
	act.Options = act.Options.with(act.Selection)
	if err := act.Options.check(cmd, act.Selection); err != nil {
		return err
	}
	var err error
	if act.Client, err = act.App.Client(); err != nil {
		return err
	}
	ctx, cancel := act.App.WithTimeout(act.User)
	defer cancel()
	if a.Begin != nil {
		end, err := a.Begin(ctx, act)
		if err != nil {
			return err
		}
		defer end()
	}
	if err := act.choose(ctx, cmd); err != nil {
		return err
	}
	err = a.Do(ctx, act)
	if act.User.Err() != nil {
		return context.Cause(act.User)
	}
	return errors.Join(err, act.Incomplete, act.print())
}

// Many reports whether messages must specify the object.
func (act *Act) Many() bool { return len(act.Targets) > 1 }

// Each runs do for all targets and records the results. do may store the object that it reads.
func (act *Act) Each(do func(*objref.Target) (result string, err error)) error {
	err := act.Try(func(t *objref.Target) error {
		result, err := do(t)
		act.results.Set(*t, result, err)
		return err
	})
	act.encoded, act.changed = act.results.List(), act.results.Changed(act.Targets)
	return err
}

// Try runs do for all targets, app.Concurrency at a time. It reports each error and continues with the other
// targets; the error of a single target is returned.
func (act *Act) Try(do func(*objref.Target) error) error {
	if len(act.Targets) == 1 {
		return do(&act.Targets[0])
	}
	failures := make([]error, len(act.Targets))
	var g errgroup.Group
	g.SetLimit(app.Concurrency)
	for i := range act.Targets {
		g.Go(func() error {
			failures[i] = do(&act.Targets[i])
			return nil
		})
	}
	_ = g.Wait() // the goroutines return nil
	var failed error
	for _, err := range failures {
		if clierr.Unreachable(err) {
			return err // the other targets fail with the same error
		}
	}
	for _, err := range failures {
		if err != nil {
			act.App.Report(err)
			failed = clierr.ErrReported
		}
	}
	return failed
}

// Changed returns the targets for which Each had no error.
func (act *Act) Changed() []objref.Target { return act.changed }

// Fail records an error of an object that occurred after Each.
func (act *Act) Fail(t objref.Target, err error) {
	act.results.Set(t, report.ResultFailed, err)
	act.changed = act.results.Changed(act.changed)
}

// Outcomes sets the output: an outcome for each object, and the changed objects for "name".
func (act *Act) Outcomes(outcomes []report.Outcome, changed []objref.Target) {
	act.encoded, act.changed = append([]report.Outcome{}, outcomes...), changed
}

// Discard discards the results, because nothing was done.
func (act *Act) Discard() { act.encoded = nil }

// print writes the results to standard output: always as a list, or for "name" a line for each object.
func (act *Act) print() error {
	switch {
	case act.encoded == nil || act.Format == "":
		return nil
	case act.Format == "name":
		return report.PrintNames(act.App, act.changed)
	}
	return act.App.Encode(act.Format, act.encoded)
}
