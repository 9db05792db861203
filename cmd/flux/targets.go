package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// targetOptions say which objects of the selected kinds a verb acts on.
type targetOptions struct {
	all           bool
	allNamespaces bool
	labels        string
	// without are fields that lists leave out.
	without []string
}

func (o *targetOptions) add(fs *pflag.FlagSet, what string) {
	fs.BoolVar(&o.all, "all", false, what+" all objects of the namespace")
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "with --all or -l: "+what+" the objects of all namespaces")
	fs.StringVarP(&o.labels, "label-selector", "l", "", what+" the objects with these labels, such as 'team=blue'")
}

// selects reports whether the options select objects by what they are and not by name.
func (o targetOptions) selects() bool { return o.all || o.labels != "" }

// on returns the options together with what the words of the command line say.
func (o targetOptions) on(s selection) targetOptions {
	o.all = o.all || s.all && o.labels == ""
	return o
}

// check says what is wrong with the words of a command line before a request is sent.
func (o targetOptions) check(cmd *cobra.Command, s selection) error {
	switch {
	case o.selects() && len(s.objects) > 0:
		return errors.New("give names or --all or --label-selector, not both")
	case o.selects() || len(s.objects) > 0 && !o.allNamespaces:
		return nil
	case o.allNamespaces:
		return errors.New("--all-namespaces needs --all or --label-selector")
	case s.every:
		return usage(cmd, "a kind and a name are required, or --all")
	case s.several():
		return hinted(fmt.Sprintf("%s KIND/NAME, or --all", verbOf(cmd)), "a name is required")
	}
	return hinted(fmt.Sprintf("%s NAME, or --all", cmd.CommandPath()), "%s name is required", s.kinds[0].Noun())
}

// verbOf is the command line up to the verb.
func verbOf(cmd *cobra.Command) string {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.CommandPath()
}

// target is one object that a verb acts on.
type target struct {
	kind            controllers.Kind
	namespace, name string
	// object is how it was found, nil where nobody has looked yet.
	object controllers.Object
}

func (t target) String() string { return t.kind.Kind + " " + t.namespace + "/" + t.name }

// key tells objects of different kinds apart, too.
func (t target) key() string { return t.String() }

// chosen is what a command line chooses.
type chosen struct {
	targets []target
	// what is selected, and where: "" for all namespaces.
	what      selection
	namespace string
	// listed is true where options selected the targets and not names.
	listed bool
	// lists are those that found the targets.
	lists []list
	// incomplete is the error of a selection that lacks what could not be listed.
	incomplete error
}

// list is a list of the objects of a kind in a namespace ("" for all), which
// had this version.
type list struct {
	kind      controllers.Kind
	namespace string
	version   string
	targets   []target
	err       error
}

// none returns the error of a selection without objects, nil for other selections.
func (c chosen) none() error {
	switch {
	case !c.listed || len(c.targets) > 0:
		return nil
	case c.incomplete != nil:
		return c.incomplete
	}
	return noneFound(c.what, c.namespace)
}

// share makes a watch of each list that has found several of the targets.
func (c chosen) share(w *reconcile.Watches) {
	count := map[string]int{}
	for _, t := range c.targets {
		count[t.kind.Kind]++
	}
	for _, l := range c.lists {
		if count[l.kind.Kind] > 1 {
			w.Share(l.kind, l.namespace, l.version)
		}
	}
}

// counted says how many objects were chosen, with their kind where there is one.
func (c chosen) counted() string { return countTargets(c.targets) }

// countTargets is the number of the targets with their kind, if they have one.
func countTargets(targets []target) string {
	for _, t := range targets {
		if t.kind.Kind != targets[0].kind.Kind {
			return fmt.Sprintf("%d objects", len(targets))
		}
	}
	return fmt.Sprintf("%d %s objects", len(targets), targets[0].kind.Kind)
}

// targets are the named objects, or the ones that the options select. Names
// are not looked up: the verb's own request finds out whether they exist.
func (a *app) targets(ctx context.Context, cmd *cobra.Command, o targetOptions, s selection) (chosen, error) {
	c, err := a.choose(ctx, cmd, o, s)
	if err == nil {
		err = c.none()
	}
	return c, err
}

// choose is targets for those to whom it is no failure when nothing is selected.
func (a *app) choose(ctx context.Context, cmd *cobra.Command, o targetOptions, s selection) (chosen, error) {
	o = o.on(s)
	if err := o.check(cmd, s); err != nil {
		return chosen{}, err
	}
	namespace, err := a.namespace(cmd)
	if err != nil {
		return chosen{}, err
	}
	c := chosen{what: s, namespace: namespace, listed: o.selects()}
	if !c.listed {
		c.targets = s.in(namespace)
		return c, nil
	}
	if o.allNamespaces {
		c.namespace = ""
	}
	client, err := a.cluster()
	if err != nil {
		return chosen{}, err
	}
	return c, a.listChosen(ctx, &c, func(_ int, k controllers.Kind) list {
		return listTargets(ctx, client, k, kube.Selection{Namespace: c.namespace, Labels: o.labels, Without: o.without})
	})
}

// in returns the named objects, with the namespace of those that name none.
func (s selection) in(namespace string) []target {
	named := selection{}
	for _, t := range s.objects {
		t.namespace = orElse(t.namespace, namespace)
		named.add(t)
	}
	return named.objects
}

// listChosen lists the objects of the selected kinds, all kinds at once. One
// kind that may not be listed does not keep the others from being chosen.
func (a *app) listChosen(ctx context.Context, c *chosen, read func(place int, k controllers.Kind) list) error {
	c.lists = make([]list, len(c.what.kinds))
	var wg sync.WaitGroup
	for i, k := range c.what.kinds {
		wg.Go(func() { c.lists[i] = read(i, k) })
	}
	wg.Wait()
	absent := 0
	for _, l := range c.lists {
		var missing *kube.MissingKindError
		switch {
		case l.err == nil:
			c.targets = append(c.targets, l.targets...)
		case c.what.every && errors.As(l.err, &missing):
			absent++
		case ctx.Err() != nil || unreachable(l.err) || !c.what.several():
			return l.err
		default:
			a.report(l.err)
			c.incomplete = errReported
		}
	}
	if absent == len(c.lists) {
		return notServed(c.what.kinds)
	}
	c.lists = slices.DeleteFunc(c.lists, func(l list) bool { return l.err != nil })
	return nil
}

func listTargets(ctx context.Context, client *kube.Client, k controllers.Kind, selected kube.Selection) list {
	l := list{kind: k, namespace: selected.Namespace}
	l.err = client.With(ctx, k, func(r kube.Resource) (err error) {
		l.targets = nil
		l.version, err = client.List(ctx, r, selected, func(o controllers.Object) error {
			l.targets = append(l.targets, target{k, controllers.Namespace(o), controllers.Name(o), o})
			return nil
		})
		return err
	})
	return l
}

// notServed is the error of a cluster that serves none of the kinds. Without
// the source-controller there is no Flux; other controllers may be left out.
func notServed(kinds []controllers.Kind) error {
	for _, k := range kinds {
		if k.Controller == "source-controller" {
			return hinted("run flux install or flux bootstrap", "Flux is not installed in this cluster")
		}
	}
	return hinted(bringsKind(kinds[0]), "the cluster does not serve %s", kindList(kinds))
}

func noneFound(s selection, namespace string) error {
	return fmt.Errorf("no %s objects found in %s", s.noun(), inNamespace(namespace))
}

// atOnce bounds how many objects a verb acts on at the same time.
const atOnce = 16

// each acts on all targets, several at a time, and reports every failure. A
// failure does not keep the others from being done.
func (a *app) each(targets []target, do func(target) error) error {
	if len(targets) == 1 {
		return do(targets[0])
	}
	failures := make([]error, len(targets))
	slots := make(chan struct{}, atOnce)
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
		a.report(err)
		failed = errReported
	}
	return failed
}

// report prints a failure that does not end the command, without the parts of
// it that were reported before.
func (a *app) report(err error) {
	if errors.Is(err, errReported) {
		for _, part := range unreported(err) {
			a.report(part)
		}
		return
	}
	message, hint := explain(err, nil)
	if hint == "" {
		hint = a.hint(err)
	}
	a.ui.Failure("%s", redact.Text(message))
	if hint != "" {
		a.ui.Line("  %s", redact.Text(hint))
	}
}

// named is the target as pkg/controllers names objects.
func (t target) named() controllers.Target {
	return controllers.Target{Kind: t.kind.Kind, Namespace: t.namespace, Name: t.name}
}

// read fills in the object of a target that nobody has looked at yet.
func (t *target) read(ctx context.Context, client *kube.Client) error {
	if t.object != nil {
		return nil
	}
	o, err := client.GetKind(ctx, t.kind, t.namespace, t.name)
	t.object = o
	return missing(err, *t)
}

// missing puts "not found" into the words that people know.
func missing(err error, t target) error {
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return &notFoundError{target: t}
	}
	return err
}

// notFoundError is returned for an object that does not exist.
type notFoundError struct {
	target target
	// others are the kinds that the name may also have meant.
	others []controllers.Kind
}

func (e *notFoundError) Error() string {
	if len(e.others) > 0 {
		return fmt.Sprintf("no Flux object named %q found in %s", e.target.name, inNamespace(e.target.namespace))
	}
	return fmt.Sprintf("%s object '%s' not found in %s", e.target.kind.Kind, e.target.name, inNamespace(e.target.namespace))
}

// kinds are those that the name may have meant.
func (e *notFoundError) kinds() []controllers.Kind {
	return append([]controllers.Kind{e.target.kind}, e.others...)
}

// remedy is the hint where no object of a similar name exists.
func (e *notFoundError) remedy() string {
	if len(e.others) > 0 {
		return "list all objects: flux get all -A"
	}
	return ""
}
