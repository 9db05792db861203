package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fluxkit/flux/internal/helper/gotemplate"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Encode writes a value to standard output as YAML if format is yaml, else as
// JSON.
func (a *App) Encode(format string, value any) error {
	return EncodeTo(a.Output(format), format, value)
}

// EncodeTo writes a value as YAML if format is yaml, else as JSON.
func EncodeTo(w io.Writer, format string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	text = append(text, '\n')
	if format == "yaml" {
		text, err = output.YAML(value)
	}
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// WriteReport writes a report to a file, with credentials masked and control characters in JSON escaped. The
// file is never incomplete.
func WriteReport(a *App, name, format string, inJSON bool, write func(io.Writer) error) error {
	var b bytes.Buffer
	masked := a.Secrets.NewWriter(&b)
	var w io.Writer = masked
	if inJSON {
		w = printable.NewJSONWriter(masked)
	}
	if err := errors.Join(write(w), masked.Flush()); err != nil {
		return err
	}
	if err := output.ReplaceFile(name, b.Bytes()); err != nil {
		return fmt.Errorf("writing the %s report: %w", format, err)
	}
	return nil
}

// Templates executes the Go templates of -o go-template in the helper process.
func Templates(a *App) output.Option {
	return output.Templates(func(template string, object []byte) (string, error) {
		ctx := context.Background()
		if operation := a.operation.Load(); operation != nil {
			ctx = *operation
		}
		return gotemplate.Execute(ctx, a.Helpers, template, object)
	})
}
