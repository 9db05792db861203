package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/ownership"
)

type ownerOptions struct {
	managers    []string
	dryRun, yes bool
	format      string
}

// newOwner returns the command that moves the ownership of fields.
func newOwner(a *app.App) *cobra.Command {
	o := &ownerOptions{}
	cmd := kinds.NewCommand(a, kinds.Verb{
		Name: "owner", Applies: controllers.Rollback, Single: true,
		Short: "Move the ownership of fields from other tools to the controller",
		Of:    "Move the ownership of fields in the objects of a %s to its controller",
		OfKind: []kinds.Example{
			{Text: `  # List the fields that kubectl, helm and other tools have set, and what the controller will do
  flux migrate owner %[1]s %[2]s --dry-run`},
			{Text: `  # Move their ownership to the controller after confirmation
  flux migrate owner %[1]s %[2]s`},
			{Text: `  # Include the fields of a pipeline
  flux migrate owner %[1]s %[2]s --field-manager my-pipeline --yes`},
			{Text: `  # Print the fields that the controller will remove
  flux migrate owner %[1]s %[2]s --dry-run -o json | jq '.fields[] | select(.effect == "removed")'`},
		},
		Flags: func(fs *pflag.FlagSet) {
			fs.StringSliceVar(&o.managers, "field-manager", nil, "also move the fields of these field managers")
			fs.BoolVar(&o.dryRun, "dry-run", false, "list the fields without changing anything")
			command.AddYes(fs, &o.yes, "skip the confirmation")
			command.AddOutput(fs, &o.format, "print the fields and the result", "json", "yaml")
		},
		Run: func(cmd *cobra.Command, s kinds.Selection) error { return o.run(a, cmd, s) },
	})
	complete.Flag(cmd, "field-manager", cobra.NoFileCompletions)
	cmd.Annotations = command.Exits{
		clierr.ExitSuccess: "all fields are owned by the controller; with --dry-run, all fields can be moved",
		clierr.ExitFailed:  "the fields of an object could not be moved, or the confirmation was declined",
	}.Annotations()
	cmd.Long = `Move the ownership of the fields that other tools have set on the objects of a
Kustomization or HelmRelease to the field manager of its controller. The
controller then removes the fields that are not in the source.

Fields of kubectl, helm, HTTP clients and --field-manager are moved.
Fields of controllers, such as the replicas of a HorizontalPodAutoscaler, are not.

The values after the removal are determined by a server-side dry run: the fields
are removed, or set to the default of the API server. Fields that are in the
source are set to the value in the source instead.

` + kinds.Help
	return cmd
}

// ownerAnswer is the JSON and YAML output.
type ownerAnswer struct {
	*ownership.Plan
	// Moved is set if the ownership was moved.
	Moved  bool           `json:"moved"`
	Failed []ownerFailure `json:"failed,omitempty"`
}

type ownerFailure struct {
	Object controllers.ID `json:"object"`
	Error  string         `json:"error"`
}

func (o *ownerOptions) run(a *app.App, cmd *cobra.Command, s kinds.Selection) error {
	path := "flux migrate owner"
	switch {
	case len(s.Objects) == 0:
		return hint.Errorf(path+" KIND/NAME", "an object is required")
	case len(s.Objects) > 1:
		return hint.Errorf("run the command once for each object", "%s accepts one object", path)
	case !o.yes && !o.dryRun && !a.UI.Interactive():
		return fmt.Errorf("moving the ownership requires confirmation: %w", ui.ErrNoTerminal)
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	plan, err := ownership.Find(ctx, client, s.In(namespace)[0], o.managers)
	if err != nil {
		return err
	}
	answer := ownerAnswer{Plan: plan}
	err = o.move(a, cmd, &answer)
	if o.format != "" {
		err = errors.Join(a.Encode(o.format, answer), err)
	}
	return err
}

// move prints the fields, asks for confirmation, and moves their ownership.
func (o *ownerOptions) move(a *app.App, cmd *cobra.Command, answer *ownerAnswer) error {
	plan := answer.Plan
	if err := o.print(a, plan); err != nil {
		return err
	}
	var failed error
	for _, s := range plan.Skipped {
		a.UI.Failure("%s: its fields cannot be moved: %s", s.Object, redact.Text(s.Reason))
		failed = clierr.ErrReported
	}
	for _, manager := range plan.Missing() {
		a.UI.Warning("the field manager %q owns no fields of the objects", manager)
	}
	what := fmt.Sprintf("%s in %s", output.Amount(len(plan.Fields), "field"), output.Amount(plan.Objects(), "object"))
	switch {
	case len(plan.Fields) == 0:
		if failed == nil {
			a.UI.Success("no other tool owns fields of the objects of %s", plan.Object)
		}
		return failed
	case o.dryRun:
		a.UI.Success("would move %s to %s", what, plan.Controller)
		return failed
	case !o.yes:
		if err := app.Approve(cmd.Context(), a, fmt.Sprintf("Move the ownership of %s to %s?", what, plan.Controller)); err != nil {
			return err
		}
	}
	ctx, stop := a.WithTimeout(cmd.Context()) // without the time of the prompt
	defer stop()
	failures := plan.Move(ctx)
	for _, f := range failures {
		a.UI.Failure("%s: its fields were not moved: %s", f.Object, redact.Text(f.Err.Error()))
		answer.Failed = append(answer.Failed, ownerFailure{f.Object, redact.Text(f.Err.Error())})
		failed = clierr.ErrReported
	}
	if answer.Moved = len(failures) < plan.Objects(); answer.Moved {
		a.UI.Success("%s owns the fields of %s", plan.Controller, output.Amount(plan.Objects()-len(failures), "object"))
	}
	return failed
}

// print lists the fields, and describes what the controller will do.
func (o *ownerOptions) print(a *app.App, plan *ownership.Plan) error {
	table := output.Table{Headers: []string{"OBJECT", "FIELD", "MANAGER", "VALUE", "AFTER"}}
	changes := 0
	for _, f := range plan.Fields {
		after := map[ownership.Effect]string{ownership.Kept: "kept", ownership.Removed: "removed"}[f.Effect]
		if f.Effect == ownership.Default {
			after = brief(f.Default)
		}
		if f.Effect != ownership.Kept {
			changes++
		}
		table.Rows = append(table.Rows, []string{f.Object.String(), f.Field, f.Manager, brief(f.Value), after})
	}
	if len(table.Rows) > 0 && o.format == "" {
		if err := a.Table(table, app.TableStyle{}); err != nil {
			return err
		}
	}
	if changes > 0 {
		k, _ := plan.Object.Flux()
		when := "in its next reconciliation"
		if k.Release {
			when = "in the next upgrade, or when it corrects drift"
		}
		a.UI.Warning("%s will change %s %s, unless the source sets them", plan.Controller, output.Amount(changes, "field"), when)
	}
	return nil
}

// briefly is the maximum length of a value in the table.
const briefly = 40

// brief returns a value on one short line.
func brief(value any) string {
	text, isText := value.(string)
	if !isText {
		encoded, _ := json.Marshal(value) // decoded from JSON
		text = string(encoded)
	}
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > briefly {
		return string(runes[:briefly-1]) + "…"
	}
	return string(runes)
}
