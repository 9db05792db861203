// Package trace implements the trace command.
package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/tree"
)

type options struct {
	apiVersion, kind string
	format           string
}

// NewCommand returns the trace command.
func NewCommand(a *app.App) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "trace <resource> <name> [<name> ...]",
		Short: "Trace an object to its source",
		Long: `Show which Kustomization or HelmRelease applies an object or its owner, and the
source and revision that the object comes from. A failed reconciliation is shown
separately from the last successful one.`,
		Annotations: command.Exits{clierr.ExitFailed: "failure, or an object is not managed by Flux"}.Annotations(),
		Example: `  # Trace a Deployment
  flux trace deployment my-app -n apps

  # Trace a Pod through its owners
  flux trace pod my-app-5d9c7b8f6-x2x7q -n apps

  # Trace several objects
  flux trace deployment/my-app configmap/my-app -n apps

  # Set the API version of an ambiguous kind
  flux trace my-app -n apps --kind=Canary --api-version=flagger.app/v1beta1

  # Print only the commit
  flux trace deployment my-app -n apps -o json | jq -r '.sources[-1].commit'`,
		ValidArgsFunction: completeTrace(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, args) })
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.kind, "kind", "", "resource type of the objects: a kind, plural, singular or short name, e.g. Deployment or deploy")
	fs.StringVar(&o.apiVersion, "api-version", "", "API version of --kind, e.g. apps/v1 (default: the preferred version of the cluster)")
	command.AddOutput(fs, &o.format, "output format, a list for several objects", "json", "yaml")
	complete.Flag(cmd, "kind", cobra.FixedCompletions(kube.Words(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// parsed parses the arguments: TYPE[,TYPE…] NAME…, TYPE/NAME…, or NAME… with
// --kind.
func (o *options) parsed(args []string) ([]objref.Ref, error) {
	const example = "flux trace deployment my-app, flux trace deployment/my-app or flux trace my-app --kind=Deployment --api-version=apps/v1"
	switch {
	case o.kind == "" && o.apiVersion != "":
		return nil, hint.Errorf("as in --kind=Deployment --api-version=apps/v1", "--api-version requires --kind")
	case len(args) == 0:
		return nil, hint.Errorf(example, "an object is required")
	case o.kind != "":
		return tracedNames([]string{o.kind}, args, example)
	case len(controllers.KindsNamed(args[0])) > 0 || !strings.Contains(args[0], "/"):
		return tracedNames(strings.Split(args[0], ","), args[1:], example)
	}
	var all []objref.Ref
	for _, arg := range args {
		ref, ok := objref.Parse([]string{arg})
		switch {
		case !strings.Contains(arg, "/"):
			return nil, hint.Errorf(example, "invalid reference %q: the resource type is missing", arg)
		case !ok:
			return nil, hint.Errorf(example, "invalid reference %q", arg)
		}
		all = append(all, ref)
	}
	return all, nil
}

// tracedNames returns a reference for each combination of type and name.
func tracedNames(words, names []string, example string) ([]objref.Ref, error) {
	var all []objref.Ref
	for _, name := range names {
		for _, word := range words {
			ref, ok := objref.Parse([]string{word, name})
			if !ok || strings.Contains(name, "/") {
				return nil, hint.Errorf(example, "invalid reference %q", name)
			}
			all = append(all, ref)
		}
	}
	if len(all) == 0 {
		return nil, hint.Errorf(example, "an object is required")
	}
	return all, nil
}

func run(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	objects, err := o.parsed(args)
	if err != nil {
		return err
	}
	_, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	var reports []traceReport
	var failed error
	for _, t := range objects {
		trace, err := traceOne(ctx, a, o.apiVersion, t, t.NamespaceOr(namespace))
		if err != nil {
			a.Report(err)
			failed = clierr.ErrReported
			continue
		}
		reports = append(reports, reportOf(trace))
		if o.format == "" {
			if err := printTrace(a, trace, o.shownKind(trace.Object.Kind)); err != nil {
				return err
			}
		}
	}
	if o.format == "" || len(reports) == 0 {
		return failed
	}
	var answer any = reports
	if len(objects) == 1 {
		answer = reports[0]
	}
	return errors.Join(a.Encode(o.format, answer), failed)
}

// shownKind returns the kind as Flux 2.9 prints it: in lower case if --kind is in lower case and
// --api-version is set.
func (o *options) shownKind(kind string) string {
	if o.apiVersion != "" && o.kind == strings.ToLower(kind) {
		return o.kind
	}
	return kind
}

func traceOne(ctx context.Context, a *app.App, apiVersion string, t objref.Ref, namespace string) (*tree.Trace, error) {
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	trace, err := tree.TraceObject(ctx, client, apiVersion, t.Word, namespace, t.Name)
	var unknown *kube.UnknownWordError
	var ambiguous *kube.AmbiguousWordError
	var version *kube.NotServedVersionError
	switch {
	case errors.As(err, &unknown), errors.As(err, &ambiguous), errors.As(err, &version):
		return nil, err
	case errors.Is(err, tree.ErrUnmanaged):
		return nil, hint.Errorf("neither the object nor its owners have the labels of a Kustomization or HelmRelease",
			"%s/%s in namespace %s is not managed by Flux", t.Word, t.Name, namespace)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s/%s not found in %q namespace", t.Word, t.Name, namespace)
	case err != nil:
		return nil, fmt.Errorf("tracing %s/%s: %w", t.Word, t.Name, err)
	}
	if apierrors.IsNotFound(trace.Applier.Err) {
		return nil, hint.Errorf("the object is an orphan, or Flux in another cluster applies it",
			"%s has the labels of %s, which does not exist", trace.Object, trace.Applier.Object)
	}
	if trace.Applier.Err != nil {
		return nil, fmt.Errorf("reading %s, which applies %s: %w", trace.Applier.Object, trace.Object, trace.Applier.Err)
	}
	return trace, nil
}

// completeTrace completes resource types without a request, and then the names
// of objects.
func completeTrace(a *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		kind := cmd.Flags().Lookup("kind").Value.String()
		switch {
		case kind != "":
			return complete.NamesOf(a, complete.ByWord(kind), "")(cmd, args, prefix)
		case strings.Contains(prefix, "/"):
			return complete.NameAfterKind(a)(cmd, args, prefix)
		case len(args) == 0:
			return complete.Matching(kube.Words(), nil, prefix), cobra.ShellCompDirectiveNoFileComp
		case strings.Contains(args[0], "/") || strings.Contains(args[0], ","):
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete.NamesOf(a, complete.ByWord(args[0]), "")(cmd, args[1:], prefix)
	}
}
