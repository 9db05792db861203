package kinds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// TargetOptions holds the flags that select objects of the selected kinds.
type TargetOptions struct {
	All           bool
	AllNamespaces bool
	Labels        string
	// reading is set for commands that change nothing, explicit for commands whose argument "all" does not
	// imply --all.
	reading, explicit bool
}

// add adds the flags to fs. verb is the action in their help. Commands that change nothing do not require
// --all with --all-namespaces.
func (o *TargetOptions) add(fs *pflag.FlagSet, verb string, reading bool) {
	every := verb + " the objects of all namespaces"
	if o.reading = reading; !reading {
		every = "with --all or -l: " + every
	}
	fs.BoolVar(&o.All, "all", false, verb+" all objects of the namespace")
	fs.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, every)
	fs.StringVarP(&o.Labels, "label-selector", "l", "", verb+" the objects with these labels, such as 'team=blue'")
}

// selects reports whether the options select objects, instead of names.
func (o TargetOptions) selects() bool { return o.All || o.Labels != "" || o.reading && o.AllNamespaces }

// with returns the options with the effect of the argument "all".
func (o TargetOptions) with(s Selection) TargetOptions {
	o.All = o.All || s.all && o.Labels == "" && (!o.explicit || o.AllNamespaces)
	return o
}

// check returns an error for arguments and flags that select no object or are mutually exclusive.
func (o TargetOptions) check(cmd *cobra.Command, s Selection) error {
	switch {
	case o.selects() && len(s.Objects) > 0:
		return errors.New("names and --all or --label-selector are mutually exclusive")
	case o.selects() || len(s.Objects) > 0 && !o.AllNamespaces:
		return nil
	case o.explicit && s.all:
		return hint.Errorf("add --all for all objects of the namespace, or --all-namespaces", "%s all selects the objects of every kind", VerbOf(cmd))
	case o.AllNamespaces:
		return errors.New("--all-namespaces requires --all or --label-selector")
	case s.Every:
		return clierr.Usage(cmd, "a kind and a name are required, or --all")
	case s.Several():
		return hint.Errorf(fmt.Sprintf("%s KIND/NAME, or --all", VerbOf(cmd)), "a name is required")
	}
	return hint.Errorf(fmt.Sprintf("%s NAME, or --all", cmd.CommandPath()), "%s name is required", s.Kinds[0].Noun())
}

// ObjectRequired returns the error for a selection without names, if the verb requires names.
func (s Selection) ObjectRequired(cmd *cobra.Command) error {
	if s.Several() {
		return hint.Errorf(VerbOf(cmd)+" KIND/NAME", "an object is required")
	}
	return hint.Errorf(cmd.CommandPath()+" NAME", "one %s name is required", s.Kinds[0].Kind)
}

// VerbOf returns the command path up to the verb, such as "flux get".
func VerbOf(cmd *cobra.Command) string {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.CommandPath()
}

// In returns the named objects. namespace is the default namespace.
func (s Selection) In(namespace string) []objref.Target {
	named := Selection{}
	for _, t := range s.Objects {
		t.Namespace = cmp.Or(t.Namespace, namespace)
		named.Add(t)
	}
	return named.Objects
}

// required is the controller that every installation has.
const required = "source-controller"

// Optional reports whether Flux is installed and the controllers of the kinds are optional components.
func Optional(ctx context.Context, client *kube.Client, kinds []controllers.Kind) bool {
	if !optional(kinds) {
		return false
	}
	source, _ := controllers.FindKind(controllers.GitRepository)
	_, err := client.Discovery().Kinds(ctx, kube.Of(source).GroupVersion())
	return err == nil
}

// optional reports whether the controllers of the kinds are optional components.
func optional(kinds []controllers.Kind) bool {
	return !slices.ContainsFunc(kinds, func(k controllers.Kind) bool { return k.Controller == required })
}

// CheckInstalled returns an error if the cluster does not serve the Flux kinds. It requires permission to
// list sources in the namespace, "" for all namespaces.
func CheckInstalled(ctx context.Context, client *kube.Client, namespace string) error {
	source := controllers.Kinds[0]
	err := client.WithServedVersion(ctx, source, func(r kube.Resource) error {
		return client.Metadata(ctx, r, kube.Selection{Namespace: namespace}, func(controllers.Object) {})
	})
	var missing *kube.MissingKindError
	if errors.As(err, &missing) {
		return NotServed(controllers.Kinds)
	}
	return err
}

// NotServed returns the error for a cluster that serves none of the kinds.
func NotServed(kinds []controllers.Kind) error {
	if !optional(kinds) {
		return hint.Errorf("run flux install or flux bootstrap", "Flux is not installed in this cluster")
	}
	return hint.Errorf(objref.InstallHint(kinds[0]), "the cluster does not serve %s", objref.JoinKinds(kinds))
}

// None completes messages that start with "no": no object was found, or none of the found objects
// matches the filters. kind is "" for several kinds.
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
