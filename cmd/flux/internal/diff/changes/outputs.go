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
		outputs = []command.Output{{Format: app.People}}
	}
	for _, output := range outputs {
		toFile := output.File != ""
		painted := style(a)
		if toFile {
			painted = render.Style{}
		}
		painted.Comparison = o.Comparison
		text, err := o.report(output.Format, results, painted)
		if err != nil {
			return err
		}
		write := func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}
		switch {
		case toFile:
			err = app.WriteReport(a, output.File, output.Format, inJSON(output.Format), write)
		case inJSON(output.Format):
			err = write(a.Output("json"))
		case slices.Contains([]string{app.People, "brief", "unified"}, output.Format):
			err = write(a.Out)
		default:
			err = write(a.Output(output.Format))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// report returns the report that the user has chosen.
func (o *Options) report(format string, results []*diff.Result, s render.Style) (string, error) {
	switch {
	case o.images:
		return render.Images(format, results)
	case o.Timeline:
		return render.Timelines(format, o.Timelines)
	}
	return render.Text(format, results, s)
}

// Locates reports whether a format shows the files of changed objects.
func (o *Options) Locates() bool {
	return slices.ContainsFunc(o.outputs, func(output command.Output) bool {
		return slices.Contains([]string{"json", "annotations", "sarif", "junit"}, output.Format)
	})
}

// inJSON reports whether a format is JSON, in which control characters are escaped.
func inJSON(format string) bool { return format == "json" || format == "sarif" }
