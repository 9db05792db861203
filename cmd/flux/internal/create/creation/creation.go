// Package creation contains shared parts of the create commands: common flags, validation, apply
// and wait.
package creation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/input"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Flags holds the common flags of the create commands.
type Flags struct {
	Export   bool
	Interval time.Duration
	labels   []string
	DryRun   string
	output   string
}

// Add registers the flags.
func (o *Flags) Add(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Export, "export", false, "export the object as YAML without access to a cluster")
	fs.DurationVar(&o.Interval, "interval", time.Minute, "reconciliation interval, e.g. 30s or 10m")
	fs.StringSliceVar(&o.labels, "label", nil, "labels of the object, e.g. team=blue,env=dev")
	fs.Var(command.Choice{Value: &o.DryRun, Allowed: []string{"server"}}, "dry-run", "'server' validates the object on the API server without persisting it")
	fs.StringVarP(&o.output, "output", "o", "", "output format: json, yaml, name, jsonpath=…, go-template=…, custom-columns=…")
}

// Builder builds objects of one kind from flags.
type Builder struct {
	// Kind is the kind in the catalog.
	Kind    string
	Example string
	Flags   []Flag
	// OtherFlags registers flags that do not set spec fields. It may be nil.
	OtherFlags func(*pflag.FlagSet)
	// Spec validates flag combinations, and sets fields that depend on several flags. It may be nil.
	Spec func(c *Creation, spec map[string]any)
	// Secret builds the Secret of the object and adds its reference to the spec. It
	// returns nil if no flag requires a Secret. It is called after Spec, if all flags are valid.
	Secret func(ctx context.Context, c *Creation, spec map[string]any) (*unstructured.Unstructured, error)
	// SecretFlags lists the flags of the Secret, which --export omits.
	SecretFlags []string
}

// ApplySecret applies the Secret of an object and reports whether an existing
// Secret has changed.
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

// NounOf returns the name of a kind in messages.
func NounOf(k controllers.Kind) string {
	if k.Family == "source" {
		return k.Kind + " source"
	}
	return k.Kind
}

// Creation is one invocation of a create command with its validated input.
type Creation struct {
	*Flags
	input.Input
	Labels map[string]any
	// required is the error for a flag value that older Flux versions do not support.
	required string
}

// New validates the name and the common flags.
func New(a *app.App, cmd *cobra.Command, o *Flags, args []string) *Creation {
	return checked(o, input.New(a, cmd, args))
}

// NewUnnamed validates the common flags of a command without a name.
func NewUnnamed(a *app.App, cmd *cobra.Command, o *Flags) *Creation {
	return checked(o, input.NewUnnamed(a, cmd))
}

func checked(o *Flags, in input.Input) *Creation {
	c := &Creation{Flags: o, Input: in, Labels: map[string]any{}}
	labels, err := syntax.Labels(o.labels)
	c.Check(err)
	for key, value := range labels {
		c.Labels[key] = value
	}
	if o.Interval <= 0 {
		c.Check(errors.New("--interval must be greater than 0"))
	}
	if o.output != "" {
		c.Check(knownFormat(o.output))
	}
	if o.Export && o.DryRun != "" {
		c.Check(errors.New("--export and --dry-run are mutually exclusive"))
	}
	return c
}

// RequireFlux records that a flag value requires a Flux version, which the cluster may not have.
func (c *Creation) RequireFlux(flag, value, version string) {
	c.required = fmt.Sprintf("--%s=%s requires Flux %s", flag, value, version)
}

// APIVersion returns the API version of an exported object: the most portable one, unless a flag
// requires a newer Flux version.
func (c *Creation) APIVersion(k controllers.Kind) string {
	if c.required == "" {
		return controllers.PortableAPIVersion(k)
	}
	if c.Export {
		c.App.UI.Warning("%s: the %s is exported as %s", c.required, k.Kind, k.APIVersion())
	}
	return k.APIVersion()
}

// Metadata returns the metadata of the object.
func (c *Creation) Metadata() map[string]any {
	m := map[string]any{"name": c.Name, "namespace": c.Namespace}
	if len(c.Labels) > 0 {
		m["labels"] = c.Labels
	}
	return m
}

// WarnSecretLeftOut warns that --export omits the Secret.
func (c *Creation) WarnSecretLeftOut(flags []string) {
	for _, name := range flags {
		if c.Cmd.Flags().Changed(name) {
			c.App.UI.Warning("--%s is not exported: create the Secret with 'flux create secret' and set --secret-ref", name)
			return
		}
	}
}

// CompleteReferences completes KIND/NAME, or NAME if there is only one kind. It
// lists only kinds that match the prefix.
func CompleteReferences(a *app.App, kinds []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), a.BriefTimeout)
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
		var lists sync.WaitGroup
		for i, kind := range kinds {
			before := ""
			if len(kinds) > 1 {
				before = kind + "/"
			}
			if !strings.HasPrefix(before, prefix) && !strings.HasPrefix(prefix, before) {
				continue
			}
			lists.Go(func() {
				for _, name := range namesOf(ctx, client, namespace, kind) {
					if name = before + name; strings.HasPrefix(name, prefix) {
						found[i] = append(found[i], name)
					}
				}
			})
		}
		lists.Wait()
		return slices.Concat(found...), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf returns the names of the objects of a kind, or nil if they cannot be listed.
func namesOf(ctx context.Context, client *kube.Client, namespace, kind string) []string {
	names, err := complete.ByWord(kind)(ctx, client, namespace)
	if err != nil {
		return nil
	}
	return names
}
