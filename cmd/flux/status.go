package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
	"github.com/fluxkit/flux/pkg/tree"
)

func newStatus(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "status [kind] name",
		Short: "Show all there is to know of an object of Flux on one screen",
		Long: `Show all there is to know of an object of Flux on one screen: whether it is
ready and, if not, why and what to do; where its content comes from; when it was
reconciled last and will be next; what it needs and what needs it; what it has
applied, and what of that is not ready; the last events.

A name alone means the Kustomization of that name or, where there is none, the
HelmRelease, or else an object of any other kind of Flux.

The exit code is 0 when the object is ready and nothing keeps changes from it,
else 1.`,
		Example: `  flux status my-app
  flux status kustomization my-app -n apps
  flux status hr/my-app -n apps

  # A chain of images: what was found, chosen and written down
  flux status image update my-app

  # For a script
  flux status my-app -o json | jq -r '.object.revision'`,
		Args:              cobra.RangeArgs(1, 3),
		ValidArgsFunction: a.completeStatus,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.status(cmd, format, args) },
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", "print json or yaml")
	completeReportFormat(cmd)
	return cmd
}

// statusKinds are the kinds that a name alone may mean, the more likely first.
func statusKinds() []controllers.Kind {
	kinds := applyingKinds()
	for _, k := range controllers.Kinds {
		if !slices.ContainsFunc(kinds, func(first controllers.Kind) bool { return first.Kind == k.Kind }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// applyingKinds are those that people mean by the name of an application.
func applyingKinds() []controllers.Kind {
	var kinds []controllers.Kind
	for _, kind := range []string{"Kustomization", "HelmRelease"} {
		k, _ := controllers.FindKind(kind)
		kinds = append(kinds, k)
	}
	return kinds
}

// statusSubject reads NAME, KIND NAME or KIND/NAME; a name alone may be of
// several kinds.
func statusSubject(args []string) ([]controllers.Kind, objectRef, error) {
	if len(args) == 1 && args[0] != "" && !strings.Contains(args[0], "/") {
		return statusKinds(), objectRef{name: args[0]}, nil
	}
	if len(args) == 3 { // the family and the word of a kind, as after other verbs
		args = []string{args[0] + " " + args[1], args[2]}
	}
	k, ref, err := fluxObject(args)
	return []controllers.Kind{k}, ref, err
}

func (a *app) completeStatus(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || strings.Contains(toComplete, "/") {
		return a.completeObject(cmd, args, toComplete)
	}
	var all []string
	for _, k := range applyingKinds() {
		names, _ := a.completeNames(k)(cmd, nil, toComplete)
		all = append(all, names...)
	}
	return append(all, offeredKinds(controllers.Kinds, toComplete)...), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) status(cmd *cobra.Command, format string, args []string) error {
	if err := checkReportFormat(format); err != nil {
		return err
	}
	kinds, ref, err := statusSubject(args)
	if err != nil {
		return err
	}
	client, namespace, err := a.place(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	s, err := a.situation(ctx, client, kinds, ref.in(namespace), ref.name)
	if err != nil {
		return err
	}
	if format != "" {
		err = a.encode(format, statusReportOf(s))
	} else {
		err = a.printSituation(s)
	}
	return answered(err, s.well())
}

// situation is all that a screen shows.
type situation struct {
	diagnose.Surroundings
	outcome tree.Outcome
	timing  timing
	tree    *tree.Node // nil where it could not be collected
	events  []happening
	unknown []string // what could not be looked at
}

// well tells whether the object is ready and nothing keeps changes from it.
func (s situation) well() bool { return s.outcome.Status == "True" && len(s.Verdict.Cases) == 0 }

// situation asks everything at once: the kind that a name alone means is known
// only when the answers are there.
func (a *app) situation(ctx context.Context, client *kube.Client, kinds []controllers.Kind, namespace, name string) (situation, error) {
	var s situation
	var noEvents error
	trees := make([]*tree.Tree, len(kinds))
	failures := make([]error, len(kinds))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.Surroundings, err = a.doctor(client).Around(ctx, kinds, namespace, name)
		if apierrors.IsNotFound(err) {
			err = notFoundOf(kinds, namespace, name)
		}
		return err
	})
	for i, k := range kinds {
		if k.Inventory == nil {
			continue
		}
		g.Go(func() error {
			root := tree.Object{Namespace: namespace, Name: name, GroupKind: schema.GroupKind{Group: k.Group, Kind: k.Kind}}
			trees[i], failures[i] = tree.Build(ctx, client.Config, root, tree.Options{Status: true})
			return nil
		})
	}
	g.Go(func() error {
		s.events, noEvents = eventsNamed(ctx, client, namespace, name)
		return nil
	})
	if err := g.Wait(); err != nil {
		return s, err
	}
	i := slices.IndexFunc(kinds, func(k controllers.Kind) bool { return k.Kind == s.Link.Kind.Kind })
	if trees[i] != nil {
		s.tree = trees[i].Root
	}
	s.unknown = append(s.unknown, s.Verdict.Unknown...)
	s.unknown = append(s.unknown, unseen(trees[i], failures[i], noEvents)...)
	s.events = slices.DeleteFunc(s.events, func(h happening) bool { return h.kind != s.Link.Kind.Kind })
	s.outcome = s.Link.Outcome()
	s.timing = timingOf(s.Link)
	return s, nil
}

func notFoundOf(kinds []controllers.Kind, namespace, name string) error {
	if len(kinds) == 1 {
		return &notFoundError{target{kind: kinds[0], namespace: namespace, name: name}}
	}
	return hinted("flux get all -A lists what there is", "no object of Flux is called %q in %q namespace", name, namespace)
}

// eventsNamed lists the events about objects of a name, the oldest first.
func eventsNamed(ctx context.Context, client *kube.Client, namespace, name string) ([]happening, error) {
	var found []happening
	selection := kube.Selection{Namespace: namespace, Fields: "involvedObject.name=" + name, Without: []string{"metadata.managedFields"}}
	_, err := client.List(ctx, eventResource(), selection, func(o controllers.Object) error {
		found = append(found, happened(o))
		return nil
	})
	sortHappenings(found)
	return found, err
}

// unseen says what of the tree and the events could not be had.
func unseen(t *tree.Tree, noTree, noEvents error) []string {
	var all []string
	switch {
	case noTree != nil:
		all = append(all, "what it has applied could not be collected: "+shortly(noTree))
	case t != nil:
		for _, gap := range t.Gaps {
			all = append(all, gap.Resource+" may not be listed: "+shortly(gap.Err))
		}
	}
	if noEvents != nil {
		all = append(all, "the events may not be listed: "+shortly(noEvents))
	}
	return all
}

// shortly is why something could not be had; that somebody may not have it
// needs no more words.
func shortly(err error) string {
	if apierrors.IsForbidden(err) {
		return "forbidden"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}
