// Package debug implements the debug commands.
package debug

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/buildflags"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// options holds the flags for one kind. inputs is --show-values or --show-vars.
type options struct {
	inputs, status, history bool
	reveal, mask, origin    bool
	format                  string
	several                 kinds.Several
}

// shown is the output for an object.
type shown struct {
	text string
	// encoded is the output in JSON and YAML. values are the values or variables, if shown.
	encoded any
	values  []shownVariable
}

// NewCommand returns the debug command.
func NewCommand(a *app.App) *cobra.Command {
	cmd := command.ObjectGroup("debug", "Show the final values or variables, the status and the history of a resource",
		newKind(a, "HelmRelease", "values", `  # Show the final chart values
  flux debug hr my-app --show-values

  # Show the object that each value comes from
  flux debug hr my-app --show-values --origin

  # Write the values to a file, including values from Secrets
  flux debug hr my-app --show-values --reveal > values.yaml

  # Show the status of one or several releases, or the release history
  flux debug hr my-app --show-status
  flux debug hr my-app my-api --show-status
  flux debug hr my-app --show-history`),
		newKind(a, "Kustomization", "vars", `  # Show the substitution variables
  flux debug ks my-app --show-vars

  # Show the object that each variable comes from
  flux debug ks my-app --show-vars --origin

  # Write the variables to a file, including variables from Secrets
  flux debug ks my-app --show-vars --reveal > vars.env

  # Show the status of one or all Kustomizations, or the reconciliation history
  flux debug ks my-app --show-status
  flux debug ks -A --show-status
  flux debug ks my-app --show-history`))
	cmd.ValidArgsFunction = complete.OfSubcommands(a)
	cmd.Annotations = command.Exits{
		clierr.ExitFailed: "failure, or masked values would be written to a file or pipe without --reveal or --mask-secrets",
	}.Annotations()
	return cmd
}

func newKind(a *app.App, kind, inputs, example string) *cobra.Command {
	o := &options{}
	k, _ := controllers.FindKind(kind)
	what, usage := "values", "show the final chart values"
	if inputs == "vars" {
		what, usage = "variables", "show the post-build substitution variables"
	}
	cmd := &cobra.Command{
		Use: k.Word + " [name ...]", Aliases: []string{k.Short},
		Short: "Show the " + what + ", the status or the history of a " + k.Kind,
		Long: "Show the final " + what + ", the status or the history of a " + k.Kind + `.

With --show-` + inputs + `, secret values are masked on a terminal. In files and pipes, where masked
values could be mistaken for real ones, the command fails unless --reveal or
--mask-secrets is set.

With several names, -A or -l, JSON and YAML are a list with the kind, namespace
and name of each object.`,
		Example:           example,
		ValidArgsFunction: complete.Names(a, k),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.Interruptible(cmd, func() error { return run(a, cmd, o, k, names) })
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.inputs, "show-"+inputs, false, usage)
	fs.BoolVar(&o.status, "show-status", false, "show the status")
	fs.BoolVar(&o.history, "show-history", false, "show the history of reconciliations")
	fs.BoolVar(&o.reveal, "reveal", false, "print secret values (only with --show-"+inputs+")")
	fs.BoolVar(&o.mask, "mask-secrets", false, "mask secret values even if standard output is not a terminal (only with --show-"+inputs+")")
	fs.BoolVar(&o.origin, "origin", false, "also show the object that each value comes from (only with --show-"+inputs+")")
	o.several.Add(fs, "show")
	command.AddOutput(fs, &o.format, "output format", "json", "yaml")
	return cmd
}

func (o *options) check(cmd *cobra.Command, k controllers.Kind, names []string) error {
	inputs := map[string]string{"HelmRelease": "--show-values", "Kustomization": "--show-vars"}[k.Kind]
	if len(names) == 0 && !o.several.Lists() {
		return hint.Errorf(fmt.Sprintf("%s NAME %s", cmd.CommandPath(), inputs), "%s name is required", k.Kind)
	}
	asked := 0
	for _, given := range []bool{o.inputs, o.status, o.history} {
		asked += report.OneIf(given)
	}
	switch {
	case asked != 1:
		return fmt.Errorf("one of %s, --show-status and --show-history is required", inputs)
	case (o.reveal || o.mask || o.origin) && !o.inputs:
		return fmt.Errorf("--reveal, --mask-secrets and --origin require %s", inputs)
	case o.reveal && o.mask:
		return errors.New("--reveal and --mask-secrets are mutually exclusive")
	}
	return nil
}

func run(a *app.App, cmd *cobra.Command, o *options, k controllers.Kind, names []string) error {
	if err := o.check(cmd, k, names); err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	var also []controllers.Kind
	for _, kind := range []string{controllers.Kustomization, controllers.HelmRelease} {
		if other, _ := controllers.FindKind(kind); !o.inputs {
			also = append(also, other)
		}
	}
	targets, err := o.several.Of(ctx, a, cmd, names, k, also...)
	if err != nil {
		return err
	}
	results, failed := kinds.Collect(a, targets, func(t *kinds.Target) (shown, error) { return read(ctx, a, o, t) })
	if cmd.Context().Err() != nil {
		return context.Cause(cmd.Context())
	}
	listed := o.several.Lists() || len(targets) > 1
	if failed != nil && !listed {
		return failed
	}
	return errors.Join(printAll(a, o, targets, results, listed), failed)
}

// read returns the output for an object.
func read(ctx context.Context, a *app.App, o *options, t *kinds.Target) (shown, error) {
	client, err := a.Client()
	if err != nil {
		return shown{}, err
	}
	if err := t.Read(ctx, client); err != nil {
		return shown{}, err
	}
	object := &unstructured.Unstructured{Object: t.Object}
	switch {
	case o.status:
		return statusOf(t.Kind, object, "status")
	case o.history:
		return statusOf(t.Kind, object, "history")
	case t.Kind.Release:
		return valuesOf(ctx, a, o, object)
	default:
		return variablesOf(ctx, a, o, object)
	}
}

// printAll prints objects. Several objects are preceded by a comment with their name, and are a
// list in JSON and YAML.
func printAll(a *app.App, o *options, targets []kinds.Target, results []shown, listed bool) error {
	var values []shownVariable
	for _, r := range results {
		values = append(values, r.values...)
	}
	if err := checkMasked(a, o, values); err != nil {
		return err
	}
	var b strings.Builder
	list := []any{}
	for i, r := range results {
		if r.encoded == nil {
			continue // it has failed
		}
		id := targets[i].Named()
		list = append(list, map[string]any{"kind": id.Kind, "namespace": id.Namespace, "name": id.Name, o.part(id.Kind): r.encoded})
		if listed {
			fmt.Fprintf(&b, "---\n# %s\n", id)
		}
		b.WriteString(r.text)
	}
	switch {
	case o.format == "" && len(targets) > 0 && o.part(targets[0].Kind.Kind) == "variables":
		return a.Print(b.String())
	case o.format == "":
		return a.Document(b.String())
	case listed:
		return a.Encode(o.format, list)
	}
	return a.Encode(o.format, results[0].encoded)
}

// part returns the name of the shown part of a kind.
func (o *options) part(kind string) string {
	switch {
	case o.status:
		return "status"
	case o.history:
		return "history"
	case kind == controllers.HelmRelease:
		return "values"
	}
	return "variables"
}

// statusDocs are the documentation links of the status fields.
var statusDocs = map[string]string{
	"Kustomization status":  "https://fluxcd.io/flux/components/kustomize/kustomizations/#kustomization-status",
	"Kustomization history": "https://fluxcd.io/flux/components/kustomize/kustomizations/#history",
	"HelmRelease status":    "https://fluxcd.io/flux/components/helm/helmreleases/#helmrelease-status",
	"HelmRelease history":   "https://fluxcd.io/flux/components/helm/helmreleases/#history",
}

// statusOf returns the status or its history field.
func statusOf(k controllers.Kind, object *unstructured.Unstructured, part string) (shown, error) {
	history, _, err := unstructured.NestedSlice(object.Object, "status", "history")
	if err != nil {
		return shown{}, fmt.Errorf("reading the history: %w", err)
	}
	if k.Release {
		explicit(history)
	}
	if history == nil {
		history = []any{}
	}
	var v any = history
	if part == "status" {
		status, _, err := unstructured.NestedMap(object.Object, "status")
		if err != nil {
			return shown{}, fmt.Errorf("reading the status: %w", err)
		}
		if len(history) > 0 {
			status["history"] = history
		}
		if status == nil {
			status = map[string]any{}
		}
		v = status
	}
	text, err := output.YAML(v)
	if err != nil {
		return shown{}, fmt.Errorf("encoding the %s: %w", part, err)
	}
	return shown{
		text:    fmt.Sprintf("# %s documentation: %s\n%s", strings.ToUpper(part[:1])+part[1:], statusDocs[k.Kind+" "+part], redact.Text(string(text))),
		encoded: v,
	}, nil
}

// explicit sets the deletion time of each release to null if it is missing,
// because scripts read the field.
func explicit(history []any) {
	for _, item := range history {
		release, ok := item.(map[string]any)
		if _, there := release["deleted"]; ok && !there {
			release["deleted"] = nil
		}
	}
}

// shownVariable is a variable in JSON and YAML output.
type shownVariable struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
	Masked bool   `json:"masked,omitempty"`
}

// variablesOf returns the variables of a Kustomization.
func variablesOf(ctx context.Context, a *app.App, o *options, object *unstructured.Unstructured) (shown, error) {
	if _, asked, _ := unstructured.NestedMap(object.Object, "spec", "postBuild"); !asked {
		return shown{}, errors.New("no post build substitutions found")
	}
	variables, err := build.Variables(ctx, object, build.LookupFunc(buildflags.Cluster(a).Data))
	if err != nil {
		return shown{}, err
	}
	list := []shownVariable{}
	var text strings.Builder
	for _, v := range variables {
		s := shownVariable{Name: v.Name, Value: v.Value, Origin: originText(v.From, "")}
		if v.From.Kind == "Secret" && !o.reveal {
			s.Value, s.Masked = redact.Mask, true
		}
		list = append(list, s)
		comment := ""
		if o.origin {
			comment = " # " + s.Origin
		}
		fmt.Fprintf(&text, "%s=%v%s\n", printable.Args([]any{s.Name, s.Value, comment})...)
	}
	return shown{text.String(), list, list}, nil
}

// checkMasked warns about masked values. If standard output is not a terminal,
// it returns an error instead, because a program would use masked values as
// real ones.
func checkMasked(a *app.App, o *options, values []shownVariable) error {
	masked := 0
	for _, s := range values {
		masked += report.OneIf(s.Masked)
	}
	switch {
	case masked == 0:
		return nil
	case !o.mask && !ui.IsTerminal(a.Out):
		return hint.Errorf("print the real values with --reveal, or accept masked values with --mask-secrets",
			"masked values (%d from Secrets) are only written to a terminal", masked)
	}
	a.UI.Warning("values from Secrets are masked (%d): print them with --reveal", masked)
	return nil
}

// originText describes the origin of a value.
func originText(from controllers.ID, key string) string {
	if from.Name == "" {
		return "inline"
	}
	if key == "" {
		return from.String()
	}
	return from.String() + " " + key
}
