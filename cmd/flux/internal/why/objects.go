package why

import (
	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// references parses KIND/NAME… or KIND[,KIND…] NAME….
func references(cmd *cobra.Command, args []string) ([]objref.Ref, error) {
	lines, err := objref.CommandLines(cmd.CommandPath(), args, true)
	if err != nil {
		return nil, err
	}
	var all []objref.Ref
	for _, line := range lines {
		ref, err := objref.ParseCommandLine(cmd.CommandPath(), line)
		if err != nil {
			return nil, err
		}
		all = append(all, ref)
	}
	return all, nil
}

// explain diagnoses the named objects one by one.
func explain(a *app.App, cmd *cobra.Command, o *options, args []string) error {
	a.SaveMemory()
	refs, err := references(cmd, args)
	if err != nil {
		return err
	}
	client, namespace, err := a.Connect(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	for i := range refs {
		refs[i].Namespace = refs[i].NamespaceOr(namespace)
	}
	line := a.UI.Progress(a.Now, "checking")
	defer line.Done()
	return kinds.Reporter[diagnosis]{
		Format: o.format, Listed: len(refs) > 1,
		Read: func(i int) (diagnosis, error) {
			v, err := diagnosisOf(ctx, report.Diagnoser(a, client), refs[i])
			if err != nil {
				return diagnosis{}, err
			}
			return diagnosis{v, report.UnappliedCommits(ctx, v.Facts)}, nil
		},
		Print: func(i int, v diagnosis) error {
			line.Done()
			return printDiagnosis(a, v.Result, refs[i], diagnose.Scope{}, v.commits)
		},
		Encoded: func(i int, v diagnosis) any {
			line.Done()
			result := encoded(v.Result, v.commits)
			result.Object = objectOf(refs, i)
			return result
		},
		Exit: func(v diagnosis) error { return determined(nil, v.Result) },
	}.Run(cmd.Context(), a, len(refs), nil)
}

// diagnosis is the diagnosis of an object with its unapplied commits.
type diagnosis struct {
	diagnose.Result
	commits report.Unapplied
}

// objectOf returns the object of a report if there are several.
func objectOf(refs []objref.Ref, i int) *controllers.ID {
	if len(refs) == 1 {
		return nil
	}
	ref := refs[i]
	id := controllers.ID{Kind: ref.Word, Namespace: ref.Namespace, Name: ref.Name}
	if len(ref.Kinds) == 1 {
		id = ref.Kinds[0].ID(ref.Namespace, ref.Name)
	}
	return &id
}
