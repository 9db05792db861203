package app

import (
	"encoding/json"
	"fmt"

	"github.com/fluxkit/flux/internal/output"
)

// Encode writes a value to standard output as YAML if format is yaml, else as
// JSON.
func (a *App) Encode(format string, answer any) error {
	text, err := json.MarshalIndent(answer, "", "  ")
	text = append(text, '\n')
	if format == "yaml" {
		text, err = output.YAML(answer)
	}
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	_, err = a.Answer(format).Write(text)
	return err
}
