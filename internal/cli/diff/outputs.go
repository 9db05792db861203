package diff

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/printable"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
)

// outputFlag is the value of --output: formats that are written to standard output or to a file.
type outputFlag struct{ outputs *[]output }

// String returns the value of the flag.
func (f outputFlag) String() string {
	if f.outputs == nil {
		return ""
	}
	var all []string
	for _, o := range *f.outputs {
		all = append(all, strings.TrimSuffix(o.format+"="+o.file, "="))
	}
	return strings.Join(all, ",")
}

// Type implements pflag.Value.
func (outputFlag) Type() string { return "stringArray" }

// Choices returns the allowed formats.
func (outputFlag) Choices() []string { return render.Formats() }

// Set adds an output.
func (f outputFlag) Set(value string) error {
	format, file, toFile := strings.Cut(value, "=")
	if err := render.Known(format); err != nil {
		return err
	}
	if toFile && file == "" {
		return fmt.Errorf("no file in %q: use %s=FILE", value, format)
	}
	for _, o := range *f.outputs {
		if o.file == file {
			if toFile {
				return fmt.Errorf("two formats for the file %s", file)
			}
			return errors.New("two formats for standard output: use FORMAT=FILE for one of them")
		}
	}
	*f.outputs = append(*f.outputs, output{format: format, file: file})
	return nil
}

// write writes the results in all formats, human to standard output by default.
func write(a *app.App, o *options, results []*diff.Result) error {
	outputs := o.outputs
	if len(outputs) == 0 {
		outputs = []output{{format: "human"}}
	}
	for _, output := range outputs {
		if output.file == "" {
			w := a.Out
			if inJSON(output.format) {
				w = a.Answer("json")
			}
			if err := report(w, o, output.format, results, style(a)); err != nil {
				return err
			}
			continue
		}
		var b bytes.Buffer
		masked := a.Secrets.NewWriter(&b)
		var w io.Writer = masked
		if inJSON(output.format) {
			w = printable.NewJSONWriter(masked)
		}
		if err := errors.Join(report(w, o, output.format, results, render.Style{}), masked.Flush()); err != nil {
			return err
		}
		if err := replaceFile(output.file, b.Bytes()); err != nil {
			return fmt.Errorf("writing the %s report: %w", output.format, err)
		}
	}
	return nil
}

// report writes the report that the user has chosen.
func report(w io.Writer, o *options, format string, results []*diff.Result, s render.Style) error {
	if o.images {
		return render.WriteImages(w, format, results)
	}
	return render.Write(w, format, results, s)
}

// inJSON reports whether a format is JSON, in which control characters are escaped.
func inJSON(format string) bool { return format == "json" || format == "sarif" }

// replaceFile writes a file, which never has a part of the content.
func replaceFile(name string, content []byte) (err error) {
	part, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	const readable = 0o644 // reports contain no secrets
	_, err = part.Write(content)
	if err = errors.Join(err, part.Chmod(readable), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), name)
}
