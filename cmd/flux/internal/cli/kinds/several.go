package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Several selects the objects of a command for one or several objects, by arguments or by flags.
type Several struct{ options TargetOptions }

// Add adds the flags to fs. verb is the action in their help.
func (s *Several) Add(fs *pflag.FlagSet, verb string) {
	fs.BoolVarP(&s.options.AllNamespaces, "all-namespaces", "A", false, verb+" the objects of all namespaces")
	fs.StringVarP(&s.options.Labels, "label-selector", "l", "", verb+" the objects with these labels, such as 'team=blue'")
	s.options.reading = true
}

// Target is an object that a command acts on.
type Target = objref.Target

// Local holds the flags that read local files instead of the cluster.
type Local struct {
	Path, File        string
	Recursive, DryRun bool
}

// CheckLocal returns an error if no object is selected, or if a flag does not support the selection.
func (s *Several) CheckLocal(cmd *cobra.Command, k controllers.Kind, names []string, local Local) error {
	path := cmd.CommandPath()
	switch several := len(names) > 1 || s.Lists(); {
	case len(names) == 0 && !s.Lists():
		return hint.Errorf(path+" NAME", "one %s name is required", k.Kind)
	case several && local.Path != "":
		return hint.Errorf("run the command once for each object with its --path, or without --path for all", "--path selects the directory of one %s", k.Kind)
	case several && local.File != "":
		return hint.Errorf("run the command once for each object", "--%s-file selects one %s", k.Word, k.Kind)
	case s.options.AllNamespaces && s.options.Labels == "" && local.Recursive:
		return hint.Errorf("remove --recursive: all objects are selected", "--all-namespaces and --recursive are mutually exclusive")
	case s.Lists() && local.DryRun:
		return hint.Errorf("specify the names: "+path+" my-app my-api --dry-run", "--dry-run does not access the cluster, which --all-namespaces and --label-selector require")
	}
	return nil
}

// Collect calls read for all objects, app.Concurrency at a time, and returns the results in the order of the
// objects. It reports the errors of several objects, and returns the error of a single one.
func Collect[T any](a *app.App, targets []Target, read func(*Target) (T, error)) ([]T, error) {
	results := make([]T, len(targets))
	at := map[string]int{}
	for i, t := range targets {
		at[t.Key()] = i
	}
	act := &Act{App: a, Targets: targets}
	err := act.Try(func(t *Target) (err error) {
		results[at[t.Key()]], err = read(t)
		return err
	})
	return results, err
}

// Lists reports whether the flags select objects.
func (s *Several) Lists() bool { return s.options.selects() }

// AllNamespaces reports whether the flags select objects of all namespaces.
func (s *Several) AllNamespaces() bool { return s.options.AllNamespaces }

// Labels returns the value of the flag --label-selector.
func (s *Several) Labels() string { return s.options.Labels }

// Selector returns the parsed label selector, or nil if it is not set.
func (s *Several) Selector() (labels.Selector, error) {
	if s.options.Labels == "" {
		return nil, nil
	}
	selector, err := labels.Parse(s.options.Labels)
	if err != nil {
		return nil, hint.Errorf("use a selector such as -l 'team=blue,env!=test'", "invalid label selector %q: %w", s.options.Labels, err)
	}
	return selector, nil
}

// exclusive returns the error for names combined with selection flags.
func (s *Several) exclusive() error {
	flag := "--label-selector"
	if s.options.AllNamespaces {
		flag = "--all-namespaces"
	}
	return hint.Errorf("specify names, or only kinds such as ks,hr with "+flag, "a resource and %s are mutually exclusive", flag)
}

// Kinds parses the arguments next to selection flags: KIND[,KIND…]. Without arguments, it returns no kinds.
func (s *Several) Kinds(words []string) ([]controllers.Kind, error) {
	var selected Selection
	for _, word := range strings.Split(strings.Join(words, ","), ",") {
		switch named := controllers.KindsNamed(word); {
		case len(words) == 0:
		case len(named) > 0:
			for _, k := range named {
				selected.addKind(k)
			}
		case len(words) > 1 || strings.Contains(word, "/") || objref.DidYouMean(word) == "":
			return nil, s.exclusive()
		default:
			return nil, objref.UnknownWord(word)
		}
	}
	return selected.Kinds, nil
}

// Of returns the objects that a kind command selects: by NAME… or KIND/NAME…, or by flags. References of the
// kinds in also are accepted. The result is never empty without an error.
func (s *Several) Of(ctx context.Context, a *app.App, cmd *cobra.Command, names []string, k controllers.Kind, also ...controllers.Kind) ([]Target, error) {
	switch {
	case s.Lists() && len(names) > 0:
		return nil, s.exclusive()
	case s.Lists():
		return s.List(ctx, a, cmd, Selection{Kinds: []controllers.Kind{k}})
	}
	selected := Selection{Kinds: []controllers.Kind{k}}
	for _, name := range names {
		if !strings.Contains(name, "/") {
			selected.Add(objref.Target{Kind: k, Name: name})
			continue
		}
		ref, ok := objref.Parse([]string{name})
		if !ok || len(ref.Kinds) != 1 {
			return nil, notAName(Selection{Kinds: []controllers.Kind{k}}, name)
		}
		of := ref.Kinds[0]
		if !slices.ContainsFunc(append(also, k), func(allowed controllers.Kind) bool { return allowed.Kind == of.Kind }) {
			return nil, hint.Errorf("run the command once for each kind", "%s does not apply to %s", cmd.CommandPath(), of.Kind)
		}
		selected.Add(objref.Target{Kind: of, Namespace: ref.Namespace, Name: ref.Name})
	}
	namespace, err := a.Namespace(cmd)
	return selected.In(namespace), err
}

// InKinds returns the objects that the flags select among the kinds in the arguments, or among all Flux
// kinds.
func (s *Several) InKinds(ctx context.Context, a *app.App, cmd *cobra.Command, words []string) ([]Target, error) {
	if len(words) == 0 && s.options.AllNamespaces {
		return nil, hint.Errorf("specify the kinds: "+cmd.CommandPath()+" ks,hr -A; flux why checks all resources", "%s --all-namespaces requires a kind", cmd.CommandPath())
	}
	among, err := s.Kinds(words)
	if err != nil {
		return nil, err
	}
	if len(among) == 0 {
		return s.List(ctx, a, cmd, Selection{Kinds: controllers.Kinds, Every: true, Word: "Flux"})
	}
	return s.List(ctx, a, cmd, Selection{Kinds: among})
}

// List returns the objects that the flags select among the selected kinds. The result is never empty without
// an error.
func (s *Several) List(ctx context.Context, a *app.App, cmd *cobra.Command, selected Selection) ([]Target, error) {
	if _, err := s.Selector(); err != nil {
		return nil, err
	}
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	act := &Act{App: a, Client: client, User: ctx, Selection: selected, Options: s.options, MayBeEmpty: true}
	if err := act.choose(ctx, cmd); err != nil {
		return nil, err
	}
	if len(act.Targets) == 0 && act.Incomplete == nil {
		noun := selected.Noun()
		return nil, fmt.Errorf("no %s", None(noun, s.options.Labels, act.Namespace, 0))
	}
	return act.Targets, act.Incomplete
}
