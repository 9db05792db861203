package changes

import (
	"io"
	"slices"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// write writes the results in all formats, human to standard output by default.
func (o *Options) write(a *app.App, results []*diff.Result) error {
	outputs := o.outputs
	if len(outputs) == 0 {
		outputs = []command.Output{{Format: "human"}}
	}
	for _, output := range outputs {
		if output.File == "" {
			w := a.Out
			switch {
			case inJSON(output.Format):
				w = a.Answer("json")
			case !slices.Contains([]string{"human", "brief", "unified"}, output.Format):
				w = a.Answer(output.Format)
			}
			if err := o.report(w, output.Format, results, style(a)); err != nil {
				return err
			}
			continue
		}
		err := app.WriteReport(a, output.File, output.Format, inJSON(output.Format), func(w io.Writer) error {
			return o.report(w, output.Format, results, render.Style{})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// report writes the report that the user has chosen.
func (o *Options) report(w io.Writer, format string, results []*diff.Result, s render.Style) error {
	switch {
	case o.images:
		return render.WriteImages(w, format, results)
	case o.Timeline:
		return render.WriteTimelines(w, format, o.Timelines)
	}
	return render.Write(w, format, results, s)
}

// inJSON reports whether a format is JSON, in which control characters are escaped.
func inJSON(format string) bool { return format == "json" || format == "sarif" }
