// Package creation has what all create commands share: the flags, the object,
// applying it and waiting for it.
package creation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/cli/validate"
	"github.com/fluxkit/flux/internal/input"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Flags are the flags of every create command.
type Flags struct {
	Export   bool
	Interval time.Duration
	labels   []string
	DryRun   string
	output   string
	// FetchTimeout is of the sources alone.
	FetchTimeout time.Duration
}

// Add adds the flags that all create commands have.
func (o *Flags) Add(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Export, "export", false, "print the object as YAML and touch no cluster")
	fs.DurationVar(&o.Interval, "interval", time.Minute, "how often the object is reconciled")
	fs.StringSliceVar(&o.labels, "label", nil, "labels of the object, as in 'team=blue,env=dev'")
	fs.Var(command.Choice{Value: &o.DryRun, Allowed: []string{"server"}}, "dry-run", "'server' lets the cluster check the object without keeping it")
	fs.StringVarP(&o.output, "output", "o", "", "print the object in this format: json|yaml|name|jsonpath=…|go-template=…")
}

// Builder makes the objects of one kind out of a command line.
type Builder struct {
	// Kind is the row of the catalogue.
	Kind    string
	Example string
	Flags   func(*pflag.FlagSet)
	// Refers lists the flags that name objects, with the kinds of these.
	Refers map[string][]string
	// Words lists the flags that take one of several words without being a choice.
	Words map[string][]string
	// Spec builds the spec, and records with c what is wrong with the flags.
	Spec func(c *Creation) map[string]any
	// Secret makes the Secret that the object needs, nil where the flags ask
	// for none; it may add the reference to the spec. It runs when spec has found nothing wrong.
	Secret func(ctx context.Context, c *Creation, spec map[string]any) (*unstructured.Unstructured, error)
	// SecretFlags are what secret is made from, and an export leaves out.
	SecretFlags []string
}

// ApplySecret applies the Secret that an object needs and tells whether it has
// changed one that was there.
func (c *Creation) ApplySecret(ctx context.Context, b Builder, spec map[string]any) (bool, error) {
	if b.Secret == nil {
		return false, nil
	}
	secret, err := b.Secret(ctx, c, spec)
	if err != nil || secret == nil {
		return false, err
	}
	done, err := c.Apply(ctx, "secret "+secret.GetName(), secret)
	return done.Before != nil && len(done.Changes()) > 0, err
}

// NounOf is how messages call an object of a kind.
func NounOf(k controllers.Kind) string {
	if k.Family == "source" {
		return k.Kind + " source"
	}
	return k.Kind
}

// Creation is one run of a create command.
type Creation struct {
	*Flags
	validate.Input
	Labelled map[string]any
}

// New checks the flags that all create commands have.
func New(a *app.App, cmd *cobra.Command, o *Flags, args []string) *Creation {
	c := &Creation{Flags: o, Input: validate.New(a, cmd, args), Labelled: map[string]any{}}
	labels, err := input.Labels(o.labels)
	c.Check(err)
	for key, value := range labels {
		c.Labelled[key] = value
	}
	if o.Interval <= 0 {
		c.Check(errors.New("--interval has to be more than 0"))
	}
	if o.output != "" {
		c.Check(knownFormat(o.output))
	}
	if o.Export && o.DryRun != "" {
		c.Check(errors.New("--export touches no cluster and --dry-run=server asks one: give one of them"))
	}
	return c
}

// Metadata returns the metadata of the object.
func (c *Creation) Metadata() map[string]any {
	m := map[string]any{"name": c.Name, "namespace": c.Namespace}
	if len(c.Labelled) > 0 {
		m["labels"] = c.Labelled
	}
	return m
}

// WarnSecretLeftOut says that an export holds no credentials.
func (c *Creation) WarnSecretLeftOut(flags []string) {
	for _, name := range flags {
		if c.Cmd.Flags().Changed(name) {
			c.App.UI.Warning("--%s is not part of the export: make the Secret with 'flux create secret' and name it with --secret-ref", name)
			return
		}
	}
}

// CompleteReferences offers Kind/name of several kinds, and the bare name of
// one. Kinds that what is typed cannot mean are not asked for.
func CompleteReferences(a *app.App, kinds []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), complete.Timeout)
		defer cancel()
		client, err := a.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := a.Namespace(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := make([][]string, len(kinds))
		var asking sync.WaitGroup
		for i, kind := range kinds {
			before := ""
			if len(kinds) > 1 {
				before = kind + "/"
			}
			if !strings.HasPrefix(before, prefix) && !strings.HasPrefix(prefix, before) {
				continue
			}
			asking.Go(func() {
				for _, name := range namesOf(ctx, client, namespace, kind) {
					if name = before + name; strings.HasPrefix(name, prefix) {
						found[i] = append(found[i], name)
					}
				}
			})
		}
		asking.Wait()
		return slices.Concat(found...), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf lists the objects of a kind, none where the cluster does not answer.
func namesOf(ctx context.Context, client *kube.Client, namespace, kind string) []string {
	r := installation.BuiltIn("v1", kind)
	if k, ok := controllers.FindKind(kind); ok {
		r = kube.Of(k)
	}
	var names []string
	if _, err := client.List(ctx, r, kube.Selection{Namespace: namespace}, func(o controllers.Object) error {
		names = append(names, controllers.Name(o))
		return nil
	}); err != nil {
		return nil
	}
	return names
}
