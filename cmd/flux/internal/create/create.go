// Package create implements flux create, which creates or updates Flux objects
// and tenants from flags.
package create

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/cmd/flux/internal/create/secret"
	"github.com/fluxkit/flux/cmd/flux/internal/create/source"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// NewCommand returns the create command.
func NewCommand(a *app.App) *cobra.Command {
	o := &creation.Flags{}
	root := command.Group("create", "Create or update resources, or export them as YAML")
	root.Long = `Create or update resources and wait until they are ready, or with --export print
them as YAML without access to a cluster. Nothing is written if any input is
invalid.

Fields:
  Fields of an existing resource keep their value unless their flag is set.
  --from copies the spec of another resource first.

Files:
  -f applies manifests: Flux resources, and the Namespaces, Secrets, ConfigMaps,
  ServiceAccounts and RoleBindings that they require. The API server validates
  all of them before the first is written.`
	root.Example = `  # Apply a source and a Kustomization from a file, and wait until they are ready
  flux create -f app.yaml

  # Apply the output of another command
  flux export kustomization app --context=staging | flux create -f - --context=production`
	var files []string
	root.Flags().StringSliceVarP(&files, "filename", "f", nil, "file with manifests to apply, '-' for standard input; can be repeated")
	withoutFiles := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(files) == 0 {
			return withoutFiles(cmd, args)
		}
		return createFiles(a, cmd, o, files)
	}
	o.Add(root.PersistentFlags())
	complete.Flag(root, "output", complete.Format)
	root.Args = noFlagsFor
	parents := map[string]*cobra.Command{"": root}
	for _, f := range kinds.Families {
		if f.Word == "artifact" {
			continue // an ArtifactGenerator has too many fields for flags
		}
		parents[f.Word] = command.Group(f.Word, "Create or update "+f.Short+" objects")
		root.AddCommand(parents[f.Word])
	}
	parents["source"].Args = noFlagsFor
	parents["source"].PersistentFlags().Duration("fetch-timeout", 0, "timeout of fetch operations, e.g. 30s (default 1m0s)")
	for _, b := range builders() {
		k, _ := controllers.FindKind(b.Kind)
		parents[k.Family].AddCommand(newKind(a, o, k, b))
	}
	root.AddCommand(newCreateTenant(a, o), secret.NewCommand(a, o))
	return root
}

// noFlagsFor returns the error for a subcommand that does not exist. For a kind without flags, the
// remedy is to apply a manifest.
func noFlagsFor(cmd *cobra.Command, args []string) error {
	err := command.NoSubcommand(cmd, args)
	if err == nil {
		return nil
	}
	for _, k := range controllers.Kinds {
		if k.Has(controllers.Create) || args[0] != k.Family && !slices.Contains(k.Words(), strings.ToLower(args[0])) {
			continue
		}
		remedy := "apply its manifest with 'flux create -f FILE'"
		if k.Source != nil && len(k.Source.Kinds) == 1 {
			remedy = "a controller creates it: apply the manifest of its " + k.Source.Kinds[0] + " with 'flux create -f FILE'"
		}
		return hint.Errorf(remedy, "flux create has no flags for %s", controllers.Indefinite(k.Kind))
	}
	return err
}

// builders returns the builders of all kinds.
func builders() []creation.Builder {
	return []creation.Builder{
		source.GitRepository(), source.OCIRepository(), source.Bucket(), source.HelmRepository(), source.HelmChart(),
		kustomization(), helmRelease(),
		alert(), provider(), receiver(),
		imageRepository(), imagePolicy(), imageUpdate(),
	}
}

func newKind(a *app.App, o *creation.Flags, k controllers.Kind, b creation.Builder) *cobra.Command {
	from := &creation.From{}
	cmd := &cobra.Command{
		Use:               k.Word + " [name]",
		Short:             "Create or update " + controllers.Indefinite(k.Kind),
		Example:           strings.TrimRight(b.Example, "\n"),
		ValidArgsFunction: complete.Names(a, k),
		RunE:              func(cmd *cobra.Command, args []string) error { return run(a, cmd, o, from, k, b, args) },
	}
	if k.Short != "" {
		cmd.Aliases = append(cmd.Aliases, k.Short)
	}
	b.AddFlags(a, cmd)
	from.Add(cmd.Flags(), k)
	complete.Flag(cmd, "from", creation.CompleteReferences(a, []string{k.Kind}))
	return cmd
}

// run applies or exports one object.
func run(a *app.App, cmd *cobra.Command, o *creation.Flags, from *creation.From, k controllers.Kind, b creation.Builder, args []string) error {
	c := creation.New(a, cmd, o, args)
	from.Check(c, b)
	spec := b.Build(c)
	if err := c.Err(); err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": c.APIVersion(k), "kind": k.Kind, "metadata": c.Metadata(), "spec": spec,
	}}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	if from.Given() {
		var err error
		if object, err = from.Copy(ctx, c, k, b, spec); err != nil {
			return err
		}
		b.Secret = nil // the copy references the Secrets of the original
	}
	if o.Export {
		c.WarnSecretLeftOut(b.SecretFlags)
		return c.Print(object)
	}
	noun := creation.NounOf(k)
	a.UI.Generate("generating %s", noun)
	renewed, err := c.ApplySecret(ctx, b, spec)
	if err != nil {
		return err
	}
	done, err := c.Apply(ctx, noun, object)
	if err != nil {
		return err
	}
	if o.DryRun == "" {
		if done.After, err = c.Await(ctx, k, done, renewed); err != nil {
			return err
		}
	}
	return c.Show(done.After)
}
