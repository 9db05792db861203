package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// TargetOptions holds the flags that select objects of the selected kinds.
type TargetOptions struct {
	All           bool
	AllNamespaces bool
	Labels        string
	// Without lists the fields that a list drops from the objects.
	Without []string
	// reading is true for a command that changes nothing.
	reading bool
}

// Add adds the flags to fs, with verb in their help.
func (o *TargetOptions) Add(fs *pflag.FlagSet, verb string) {
	fs.BoolVar(&o.All, "all", false, verb+" all objects of the namespace")
	fs.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "with --all or -l: "+verb+" the objects of all namespaces")
	fs.StringVarP(&o.Labels, "label-selector", "l", "", verb+" the objects with these labels, such as 'team=blue'")
}

// AddReading adds the flags of a command that changes nothing: it does not require
// --all with --all-namespaces.
func (o *TargetOptions) AddReading(fs *pflag.FlagSet, verb string) {
	o.Add(fs, verb)
	fs.Lookup("all-namespaces").Usage = verb + " the objects of all namespaces"
	o.reading = true
}

// Selects reports whether the options select objects, instead of names.
func (o TargetOptions) Selects() bool { return o.All || o.Labels != "" || o.reading && o.AllNamespaces }

// With returns the options combined with the argument "all" of a selection.
func (o TargetOptions) With(s Selection) TargetOptions {
	o.All = o.All || s.all && o.Labels == ""
	return o
}

// Check returns an error for arguments and flags that select no object or exclude
// each other.
func (o TargetOptions) Check(cmd *cobra.Command, s Selection) error {
	switch {
	case o.Selects() && len(s.Objects) > 0:
		return errors.New("names and --all or --label-selector are mutually exclusive")
	case o.Selects() || len(s.Objects) > 0 && !o.AllNamespaces:
		return nil
	case o.AllNamespaces:
		return errors.New("--all-namespaces needs --all or --label-selector")
	case s.Every:
		return clierr.Usage(cmd, "a kind and a name are required, or --all")
	case s.Several():
		return hint.Errorf(fmt.Sprintf("%s KIND/NAME, or --all", VerbOf(cmd)), "a name is required")
	}
	return hint.Errorf(fmt.Sprintf("%s NAME, or --all", cmd.CommandPath()), "%s name is required", s.Kinds[0].Noun())
}

// VerbOf returns the command path up to the verb, such as "flux get".
func VerbOf(cmd *cobra.Command) string {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.CommandPath()
}

// Chosen holds the objects that a command acts on.
type Chosen struct {
	Targets []objref.Target
	What    Selection
	// Namespace is the namespace of the lists, "" for all namespaces.
	Namespace string
	// Listed is true if TargetOptions selected the targets, false for names.
	Listed bool
	// Lists has the lists that returned the targets.
	Lists []List
	// Incomplete is not nil if some kinds could not be listed.
	Incomplete error
}

// List is the result of a list request for a kind in a namespace, "" for all
// namespaces.
type List struct {
	Kind      controllers.Kind
	Namespace string
	// version is the resource version of the list, from which a watch starts.
	version string
	Targets []objref.Target
	Err     error
}

// NoneFound returns an error if options were given and selected no objects.
func (c Chosen) NoneFound() error {
	switch {
	case !c.Listed || len(c.Targets) > 0:
		return nil
	case c.Incomplete != nil:
		return c.Incomplete
	}
	return noneFound(c.What, c.Namespace)
}

// Share lets w start a watch from each list that returned several targets.
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

// Targets returns the named objects, or those that the options select. It does
// not read named objects: the request of the command reports missing ones.
func Targets(ctx context.Context, a *app.App, cmd *cobra.Command, o TargetOptions, s Selection) (Chosen, error) {
	c, err := Choose(ctx, a, cmd, o, s)
	if err == nil {
		err = c.NoneFound()
	}
	return c, err
}

// Choose is like Targets without an error for an empty selection.
func Choose(ctx context.Context, a *app.App, cmd *cobra.Command, o TargetOptions, s Selection) (Chosen, error) {
	o = o.With(s)
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

// In returns the named objects, with namespace for those that have none.
func (s Selection) In(namespace string) []objref.Target {
	named := Selection{}
	for _, t := range s.Objects {
		t.Namespace = cmp.Or(t.Namespace, namespace)
		named.Add(t)
	}
	return named.Objects
}

// ListKinds lists the objects of the selected kinds concurrently. If some kinds
// cannot be listed it reports them and sets c.Incomplete.
func ListKinds(ctx context.Context, a *app.App, c *Chosen, read func(index int, k controllers.Kind) List) error {
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

// ListTargets lists the objects of a kind as targets.
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

// NotServed returns the error for a cluster that serves none of the kinds. Every
// installation has source-controller; other controllers are optional.
func NotServed(kinds []controllers.Kind) error {
	for _, k := range kinds {
		if k.Controller == "source-controller" {
			return hint.Errorf("run flux install or flux bootstrap", "Flux is not installed in this cluster")
		}
	}
	return hint.Errorf(objref.InstallHint(kinds[0]), "the cluster does not serve %s", objref.JoinKinds(kinds))
}

func noneFound(s Selection, namespace string) error {
	return fmt.Errorf("no %s", None(s.Noun(), "", namespace, 0))
}

// None describes, after the word no, that no object was found or that none of those found matches
// the filters: objects of a kind, or of several if kind is "".
func None(kind, labels, namespace string, found int) string {
	noun := strings.TrimSpace(kind + " object")
	if found > 0 {
		where := "all namespaces"
		if namespace != "" {
			where = objref.InNamespace(namespace)
		}
		return fmt.Sprintf("%s matches the filters: %s checked in %s", noun, output.Amount(found, noun), where)
	}
	if labels != "" {
		labels = fmt.Sprintf(" with the labels %q", labels)
	}
	return fmt.Sprintf("%ss%s found in %s", noun, labels, objref.InNamespace(namespace))
}

// Each runs do for all targets, app.Concurrency at a time. It reports each error
// and continues with the other targets. do may store the object that it reads.
func Each(a *app.App, targets []objref.Target, do func(*objref.Target) error) error {
	if len(targets) == 1 {
		return do(&targets[0])
	}
	failures := make([]error, len(targets))
	slots := make(chan struct{}, app.Concurrency)
	var wg sync.WaitGroup
	for i := range targets {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			failures[i] = do(&targets[i])
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
