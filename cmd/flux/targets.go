package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/redact"
	"github.com/fluxkit/flux/pkg/controllers"
)

// targetOptions say which objects of a kind a verb acts on.
type targetOptions struct {
	all           bool
	allNamespaces bool
	labels        string
}

func (o *targetOptions) add(fs *pflag.FlagSet, what string) {
	fs.BoolVar(&o.all, "all", false, what+" all objects of the namespace")
	fs.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "with --all or -l: "+what+" the objects of all namespaces")
	fs.StringVarP(&o.labels, "label-selector", "l", "", what+" the objects with these labels, such as 'team=blue'")
}

// selects tells whether the options name objects by what they are and not by name.
func (o *targetOptions) selects() bool { return o.all || o.labels != "" }

// check says what is wrong with the words of a command line before a request is sent.
func (o *targetOptions) check(cmd *cobra.Command, k controllers.Kind, names []string) error {
	switch {
	case o.selects() && len(names) > 0:
		return errors.New("give names or --all or --label-selector, not both")
	case !o.selects() && o.allNamespaces:
		return errors.New("--all-namespaces needs --all or --label-selector")
	case !o.selects() && len(names) == 0:
		return hinted(fmt.Sprintf("%s NAME, or --all", cmd.CommandPath()), "%s name is required", k.Noun())
	}
	return nil
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
	// listed says that they were found by a list of namespace ("" for all),
	// which had this version.
	listed    bool
	namespace string
	version   string
}

// targets are the named objects, or the ones that the options select. Names
// are not looked up: the verb's own request finds out whether they exist.
func (a *app) targets(ctx context.Context, cmd *cobra.Command, o *targetOptions, k controllers.Kind, names []string) ([]target, error) {
	c, err := a.choose(ctx, cmd, o, k, names)
	if err == nil && c.listed && len(c.targets) == 0 {
		err = noneFound(k, c.namespace)
	}
	return c.targets, err
}

// choose is targets for verbs that watch what they have listed, and for those
// to whom it is no failure when nothing is selected.
func (a *app) choose(ctx context.Context, cmd *cobra.Command, o *targetOptions, k controllers.Kind, names []string) (chosen, error) {
	if err := o.check(cmd, k, names); err != nil {
		return chosen{}, err
	}
	namespace, err := a.namespace(cmd)
	if err != nil {
		return chosen{}, err
	}
	c := chosen{namespace: namespace, listed: o.selects()}
	if !c.listed {
		seen := map[string]bool{}
		for _, name := range names {
			if !seen[name] {
				c.targets = append(c.targets, target{kind: k, namespace: namespace, name: name})
			}
			seen[name] = true
		}
		return c, nil
	}
	if o.allNamespaces {
		c.namespace = ""
	}
	client, err := a.cluster()
	if err != nil {
		return chosen{}, err
	}
	err = client.With(ctx, k, func(r kube.Resource) (err error) {
		c.targets = nil
		c.version, err = client.List(ctx, r, kube.Selection{Namespace: c.namespace, Labels: o.labels}, func(o controllers.Object) error {
			c.targets = append(c.targets, target{k, controllers.Namespace(o), controllers.Name(o), o})
			return nil
		})
		return err
	})
	return c, err
}

func noneFound(k controllers.Kind, namespace string) error {
	if namespace == "" {
		return fmt.Errorf("no %s objects found in any namespace", k.Kind)
	}
	return fmt.Errorf("no %s objects found in %q namespace", k.Kind, namespace)
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

// report tells the user of a failure that does not end the command.
func (a *app) report(err error) {
	if errors.Is(err, errReported) {
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
	err := client.With(ctx, t.kind, func(r kube.Resource) (err error) {
		t.object, err = client.Get(ctx, r, t.namespace, t.name)
		return err
	})
	return missing(err, *t)
}

// missing puts "not found" into the words that people know.
func missing(err error, t target) error {
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return &notFoundError{t}
	}
	return err
}

// notFoundError says that there is no object of that name.
type notFoundError struct{ target target }

func (e *notFoundError) Error() string {
	where := "any namespace"
	if e.target.namespace != "" {
		where = fmt.Sprintf("%q namespace", e.target.namespace)
	}
	return fmt.Sprintf("%s object '%s' not found in %s", e.target.kind.Kind, e.target.name, where)
}
