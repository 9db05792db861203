package main

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

	"github.com/fluxkit/flux/internal/input"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// createFlags are the flags of every create command.
type createFlags struct {
	export   bool
	interval time.Duration
	labels   []string
	dryRun   string
	output   string
	// fetchTimeout is of the sources alone.
	fetchTimeout time.Duration
}

func (o *createFlags) add(fs *pflag.FlagSet) {
	fs.BoolVar(&o.export, "export", false, "print the object as YAML and touch no cluster")
	fs.DurationVar(&o.interval, "interval", time.Minute, "how often the object is reconciled")
	fs.StringSliceVar(&o.labels, "label", nil, "labels of the object, as in 'team=blue,env=dev'")
	fs.Var(choice{&o.dryRun, []string{"server"}}, "dry-run", "'server' lets the cluster check the object without keeping it")
	fs.StringVarP(&o.output, "output", "o", "", "print the object in this format: json|yaml|name|jsonpath=…|go-template=…")
}

// builder makes the objects of one kind out of a command line.
type builder struct {
	// kind is the row of the catalogue.
	kind    string
	example string
	flags   func(*pflag.FlagSet)
	// refers lists the flags that name objects, with the kinds of these.
	refers map[string][]string
	// words lists the flags that take one of several words without being a choice.
	words map[string][]string
	// spec builds the spec, and records with c what is wrong with the flags.
	spec func(c *creation) map[string]any
	// secret makes the Secret that the object needs, nil where the flags ask
	// for none; it may add the reference to the spec. It runs when spec has found nothing wrong.
	secret func(ctx context.Context, c *creation, spec map[string]any) (*unstructured.Unstructured, error)
	// secretFlags are what secret is made from, and an export leaves out.
	secretFlags []string
}

func newCreate(a *app) *cobra.Command {
	o := &createFlags{}
	root := group("create", "Create or update resources, or export them as YAML")
	root.Long = `Create or update resources and wait until they are ready. With --export they are
printed as YAML to be committed to Git, without access to a cluster.
Nothing is written if any input is invalid. Fields of an existing resource that are
not given keep their value.`
	o.add(root.PersistentFlags())
	completeFlag(root, "output", formatCompletion)
	parents := map[string]*cobra.Command{"": root}
	for _, f := range families {
		if f.word == "artifact" {
			continue // generators are not made out of flags
		}
		parents[f.word] = group(f.word, "Create or update "+f.short+" objects")
		root.AddCommand(parents[f.word])
	}
	parents["source"].PersistentFlags().DurationVar(&o.fetchTimeout, "fetch-timeout", 0, "how long fetching the source may take")
	for _, b := range a.builders() {
		k, _ := controllers.FindKind(b.kind)
		parents[k.Family].AddCommand(a.createCommand(o, k, b))
	}
	root.AddCommand(newCreateTenant(a, o), newCreateSecret(a, o))
	return root
}

// builders are the builders of all kinds, a function each.
func (a *app) builders() []builder {
	return []builder{
		buildGitRepository(), buildOCIRepository(), buildBucket(), buildHelmRepository(), buildHelmChart(),
		buildKustomization(), buildHelmRelease(),
		buildAlert(), buildProvider(), buildReceiver(),
		buildImageRepository(), buildImagePolicy(), buildImageUpdate(),
	}
}

func (a *app) createCommand(o *createFlags, k controllers.Kind, b builder) *cobra.Command {
	cmd := &cobra.Command{
		Use:               k.Word + " [name]",
		Short:             "Create or change a " + k.Kind,
		Example:           strings.TrimRight(b.example, "\n"),
		ValidArgsFunction: a.completeNames(k),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.create(cmd, o, k, b, args) },
	}
	if strings.ContainsAny(k.Kind[:1], "AEIO") {
		cmd.Short = "Create or change an " + k.Kind
	}
	if k.Short != "" {
		cmd.Aliases = append(cmd.Aliases, k.Short)
	}
	b.flags(cmd.Flags())
	for flag, kinds := range b.refers {
		completeFlag(cmd, flag, a.completeReferences(kinds))
	}
	for flag, words := range b.words {
		completeFlag(cmd, flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// create makes one object of a kind, or prints it.
func (a *app) create(cmd *cobra.Command, o *createFlags, k controllers.Kind, b builder, args []string) error {
	c := a.newCreation(cmd, o, args)
	spec := b.spec(c)
	if err := c.verdict(); err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k.APIVersion(), "kind": k.Kind, "metadata": c.metadata(), "spec": spec,
	}}
	if o.export {
		c.warnSecretLeftOut(b.secretFlags)
		return c.print(object)
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	noun := nounOf(k)
	a.ui.Generate("generating %s", noun)
	renewed, err := c.applySecret(ctx, b, spec)
	if err != nil {
		return err
	}
	done, err := c.apply(ctx, noun, object)
	if err != nil {
		return err
	}
	if o.dryRun == "" {
		if done.After, err = c.await(ctx, k, done, renewed); err != nil {
			return err
		}
	}
	return c.show(done.After)
}

// applySecret applies the Secret that an object needs and tells whether it has
// changed one that was there.
func (c *creation) applySecret(ctx context.Context, b builder, spec map[string]any) (bool, error) {
	if b.secret == nil {
		return false, nil
	}
	secret, err := b.secret(ctx, c, spec)
	if err != nil || secret == nil {
		return false, err
	}
	done, err := c.apply(ctx, "secret "+secret.GetName(), secret)
	return done.Before != nil && len(done.Changes()) > 0, err
}

// nounOf is how messages call an object of a kind.
func nounOf(k controllers.Kind) string {
	if k.Family == "source" {
		return k.Kind + " source"
	}
	return k.Kind
}

// creation is one run of a create command.
type creation struct {
	*createFlags
	intake
	labelled map[string]any
}

func (a *app) newCreation(cmd *cobra.Command, o *createFlags, args []string) *creation {
	c := &creation{createFlags: o, intake: a.newIntake(cmd, args), labelled: map[string]any{}}
	labels, err := input.Labels(o.labels)
	c.wrong(err)
	for key, value := range labels {
		c.labelled[key] = value
	}
	if o.interval <= 0 {
		c.wrong(errors.New("--interval has to be more than 0"))
	}
	if o.output != "" {
		c.wrong(knownFormat(o.output))
	}
	if o.export && o.dryRun != "" {
		c.wrong(errors.New("--export touches no cluster and --dry-run=server asks one: give one of them"))
	}
	return c
}

func (c *creation) metadata() map[string]any {
	m := map[string]any{"name": c.name, "namespace": c.namespace}
	if len(c.labelled) > 0 {
		m["labels"] = c.labelled
	}
	return m
}

// warnSecretLeftOut says that an export holds no credentials.
func (c *creation) warnSecretLeftOut(flags []string) {
	for _, name := range flags {
		if c.cmd.Flags().Changed(name) {
			c.app.ui.Warning("--%s is not part of the export: make the Secret with 'flux create secret' and name it with --secret-ref", name)
			return
		}
	}
}

// completeReferences offers Kind/name of several kinds, and the bare name of
// one. Kinds that what is typed cannot mean are not asked for.
func (a *app) completeReferences(kinds []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		client, err := a.cluster()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := a.namespace(cmd)
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
	r := builtin("v1", kind)
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
