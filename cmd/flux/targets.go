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

// target is one object that a verb acts on.
type target struct {
	kind            controllers.Kind
	namespace, name string
}

func (t target) String() string { return t.kind.Kind + " " + t.namespace + "/" + t.name }

// targets are the named objects, or the ones that the options select. Names
// are not looked up: the verb's own request finds out whether they exist.
func (a *app) targets(ctx context.Context, cmd *cobra.Command, o *targetOptions, k controllers.Kind, names []string) ([]target, error) {
	namespace, err := a.namespace(cmd)
	if err != nil {
		return nil, err
	}
	selects := o.all || o.labels != ""
	switch {
	case selects && len(names) > 0:
		return nil, errors.New("give names or --all or --label-selector, not both")
	case !selects && o.allNamespaces:
		return nil, errors.New("--all-namespaces needs --all or --label-selector")
	case !selects && len(names) == 0:
		return nil, hinted(fmt.Sprintf("%s NAME, or --all", cmd.CommandPath()), "%s name is required", k.Noun())
	}
	var list []target
	for _, name := range names {
		list = append(list, target{k, namespace, name})
	}
	if !selects {
		return list, nil
	}
	if o.allNamespaces {
		namespace = ""
	}
	client, err := a.cluster()
	if err != nil {
		return nil, err
	}
	err = client.With(ctx, k, func(r kube.Resource) error {
		list = nil
		_, err := client.List(ctx, r, kube.Selection{Namespace: namespace, Labels: o.labels}, func(o controllers.Object) error {
			list = append(list, target{k, controllers.Namespace(o), controllers.Name(o)})
			return nil
		})
		return err
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("no %s objects found in %q namespace", k.Kind, namespace)
	}
	return list, err
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
		if !errors.Is(err, errReported) {
			message, hint := explain(err, nil)
			a.ui.Failure("%s", message)
			if hint != "" {
				a.ui.Line("  %s", hint)
			}
		}
		failed = errReported
	}
	return failed
}

// missing puts "not found" into the words that people know.
func missing(err error, t target) error {
	if apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return fmt.Errorf("%s object '%s' not found in %q namespace", t.kind.Kind, t.name, t.namespace)
	}
	return err
}
