package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// TargetOptions say which objects of the selected kinds a verb acts on.
type TargetOptions struct {
	All           bool
	AllNamespaces bool
	Labels        string
	// Without are fields that lists leave out.
	Without []string
}

// Add adds the flags; what is the verb in their help.
func (o *TargetOptions) Add(fs *pflag.FlagSet, what string) {
	fs.BoolVar(&o.All, "all", false, what+" all objects of the namespace")
	fs.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "with --all or -l: "+what+" the objects of all namespaces")
	fs.StringVarP(&o.Labels, "label-selector", "l", "", what+" the objects with these labels, such as 'team=blue'")
}

// Selects reports whether the options select objects by what they are and not by name.
func (o TargetOptions) Selects() bool { return o.All || o.Labels != "" }

// On returns the options together with what the words of the command line say.
func (o TargetOptions) On(s Selection) TargetOptions {
	o.All = o.All || s.all && o.Labels == ""
	return o
}

// Check says what is wrong with the words of a command line before a request is sent.
func (o TargetOptions) Check(cmd *cobra.Command, s Selection) error {
	switch {
	case o.Selects() && len(s.Objects) > 0:
		return errors.New("give names or --all or --label-selector, not both")
	case o.Selects() || len(s.Objects) > 0 && !o.AllNamespaces:
		return nil
	case o.AllNamespaces:
		return errors.New("--all-namespaces needs --all or --label-selector")
	case s.Every:
		return clierr.Usage(cmd, "a kind and a name are required, or --all")
	case s.Several():
		return clierr.WithHint(fmt.Sprintf("%s KIND/NAME, or --all", VerbOf(cmd)), "a name is required")
	}
	return clierr.WithHint(fmt.Sprintf("%s NAME, or --all", cmd.CommandPath()), "%s name is required", s.Kinds[0].Noun())
}

// VerbOf is the command line up to the verb.
func VerbOf(cmd *cobra.Command) string {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.CommandPath()
}

// Chosen is what a command line chooses.
type Chosen struct {
	Targets []objref.Target
	// What is selected, and where: "" for all namespaces.
	What      Selection
	Namespace string
	// Listed is true where options selected the targets and not names.
	Listed bool
	// Lists are those that found the targets.
	Lists []List
	// Incomplete is the error of a selection that lacks what could not be listed.
	Incomplete error
}

// List is a list of the objects of a kind in a namespace ("" for all), which
// had this version.
type List struct {
	Kind      controllers.Kind
	Namespace string
	version   string
	Targets   []objref.Target
	Err       error
}

// NoneFound returns the error of a selection without objects, nil for other selections.
func (c Chosen) NoneFound() error {
	switch {
	case !c.Listed || len(c.Targets) > 0:
		return nil
	case c.Incomplete != nil:
		return c.Incomplete
	}
	return noneFound(c.What, c.Namespace)
}

// Share makes a watch of each list that has found several of the targets.
func (c Chosen) Share(w *reconcile.Watches) {
	count := map[string]int{}
	for _, t := range c.Targets {
		count[t.Kind.Kind]++
	}
	for _, l := range c.Lists {
		if count[l.Kind.Kind] > 1 {
			w.Share(l.Kind, l.Namespace, l.version)
		}
	}
}

// Count says how many objects were chosen, with their kind where there is one.
func (c Chosen) Count() string { return Count(c.Targets) }

// Count is the number of the targets with their kind, if they have one.
func Count(targets []objref.Target) string {
	for _, t := range targets {
		if t.Kind.Kind != targets[0].Kind.Kind {
			return fmt.Sprintf("%d objects", len(targets))
		}
	}
	return fmt.Sprintf("%d %s objects", len(targets), targets[0].Kind.Kind)
}

// Targets are the named objects, or the ones that the options select. Names
// are not looked up: the verb's own request finds out whether they exist.
func Targets(ctx context.Context, a *app.App, cmd *cobra.Command, o TargetOptions, s Selection) (Chosen, error) {
	c, err := Choose(ctx, a, cmd, o, s)
	if err == nil {
		err = c.NoneFound()
	}
	return c, err
}

// Choose is as targets, but selecting nothing is not an error.
func Choose(ctx context.Context, a *app.App, cmd *cobra.Command, o TargetOptions, s Selection) (Chosen, error) {
	o = o.On(s)
	if err := o.Check(cmd, s); err != nil {
		return Chosen{}, err
	}
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return Chosen{}, err
	}
	c := Chosen{What: s, Namespace: namespace, Listed: o.Selects()}
	if !c.Listed {
		c.Targets = s.In(namespace)
		return c, nil
	}
	if o.AllNamespaces {
		c.Namespace = ""
	}
	client, err := a.Client()
	if err != nil {
		return Chosen{}, err
	}
	return c, ListKinds(ctx, a, &c, func(_ int, k controllers.Kind) List {
		return ListTargets(ctx, client, k, kube.Selection{Namespace: c.Namespace, Labels: o.Labels, Without: o.Without})
	})
}

// In returns the named objects, with the namespace of those that name none.
func (s Selection) In(namespace string) []objref.Target {
	named := Selection{}
	for _, t := range s.Objects {
		t.Namespace = cmp.Or(t.Namespace, namespace)
		named.Add(t)
	}
	return named.Objects
}

// ListKinds lists the objects of the selected kinds, all kinds at once. One
// kind that may not be listed does not keep the others from being chosen.
func ListKinds(ctx context.Context, a *app.App, c *Chosen, read func(place int, k controllers.Kind) List) error {
	c.Lists = make([]List, len(c.What.Kinds))
	var wg sync.WaitGroup
	for i, k := range c.What.Kinds {
		wg.Go(func() { c.Lists[i] = read(i, k) })
	}
	wg.Wait()
	absent := 0
	for _, l := range c.Lists {
		var missing *kube.MissingKindError
		switch {
		case l.Err == nil:
			c.Targets = append(c.Targets, l.Targets...)
		case c.What.Every && errors.As(l.Err, &missing):
			absent++
		case ctx.Err() != nil || clierr.Unreachable(l.Err) || !c.What.Several():
			return l.Err
		default:
			a.Report(l.Err)
			c.Incomplete = clierr.ErrReported
		}
	}
	if absent == len(c.Lists) {
		return NotServed(c.What.Kinds)
	}
	c.Lists = slices.DeleteFunc(c.Lists, func(l List) bool { return l.Err != nil })
	return nil
}

// ListTargets lists the objects of a kind.
func ListTargets(ctx context.Context, client *kube.Client, k controllers.Kind, selected kube.Selection) List {
	l := List{Kind: k, Namespace: selected.Namespace}
	l.Err = client.WithServedVersion(ctx, k, func(r kube.Resource) (err error) {
		l.Targets = nil
		l.version, err = client.List(ctx, r, selected, func(o controllers.Object) error {
			l.Targets = append(l.Targets, objref.Target{Kind: k, Namespace: controllers.Namespace(o), Name: controllers.Name(o), Object: o})
			return nil
		})
		return err
	})
	return l
}

// NotServed is the error of a cluster that serves none of the kinds. Without
// the source-controller there is no Flux; other controllers may be left out.
func NotServed(kinds []controllers.Kind) error {
	for _, k := range kinds {
		if k.Controller == "source-controller" {
			return clierr.WithHint("run flux install or flux bootstrap", "Flux is not installed in this cluster")
		}
	}
	return clierr.WithHint(objref.InstallHint(kinds[0]), "the cluster does not serve %s", objref.JoinKinds(kinds))
}

func noneFound(s Selection, namespace string) error {
	return fmt.Errorf("no %s objects found in %s", s.Noun(), objref.InNamespace(namespace))
}

// Each acts on all targets, several at a time, and reports every failure. A
// failure does not keep the others from being done.
func Each(a *app.App, targets []objref.Target, do func(objref.Target) error) error {
	if len(targets) == 1 {
		return do(targets[0])
	}
	failures := make([]error, len(targets))
	slots := make(chan struct{}, app.Concurrency)
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			failures[i] = do(t)
		})
	}
	wg.Wait()
	var failed error
	for _, err := range failures {
		if err == nil {
			continue
		}
		a.Report(err)
		failed = clierr.ErrReported
	}
	return failed
}
