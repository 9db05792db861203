// Package template executes the templates of ResourceSets. flux-helper runs it, because a template may need any amount of
// time and memory.
package template

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"text/template"

	sprig "github.com/go-task/slim-sprig/v3"
	"github.com/gosimple/slug"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
)

// Execute executes each template with each set of inputs, and returns the texts of each template. Functions that read the
// environment or the time do not exist, as in flux-operator.
func Execute(ctx context.Context, templates []build.Template, inputs []map[string]any) ([][]string, error) {
	functions := sprig.HermeticTxtFuncMap()
	maps.Copy(functions, template.FuncMap{"toYaml": toYAML, "mustToYaml": toYAML, "slugify": slug.Make, "inputs": func() any { return nil }})
	left := budget.HelperOutput
	all := make([][]string, len(templates))
	for i, one := range templates {
		parsed, err := template.New(one.Name).Delims("<<", ">>").Option("missingkey=error").Funcs(functions).Parse(one.Text)
		if err != nil {
			return nil, explained(one, err)
		}
		for _, set := range inputs {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			parsed.Funcs(template.FuncMap{"inputs": func() map[string]any { return set }})
			out := &bounded{left: left}
			if err := parsed.Execute(out, nil); err != nil {
				return nil, explained(one, err)
			}
			left = out.left
			all[i] = append(all[i], out.String())
		}
	}
	return all, nil
}

// bounded collects a text of a limited size.
type bounded struct {
	strings.Builder
	left int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, &budget.ExceededError{Fact: "the template output is larger than " + budget.Size(budget.HelperOutput)}
	}
	return b.Builder.Write(p)
}

// failure matches the error message of a template: the line, and the part that failed.
var failure = lazy.Regexp(`^template: [^:]*:(\d+)(?::\d+)?: (?:executing "[^"]*" at <(.*?)>: )?`)

// explained returns an error with the field of a template. For a resource, it contains the object instead of the line,
// because line numbers in a resource differ from line numbers in the file.
func explained(t build.Template, err error) error {
	var known struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	place := t.Name
	found := failure().FindStringSubmatch(err.Error())
	switch {
	case found == nil:
		return fmt.Errorf("%s: %w", place, err)
	case !strings.HasSuffix(t.Name, "]"):
		place += ", line " + found[1]
	case yaml.Unmarshal([]byte(t.Text), &known) == nil && known.Kind != "":
		place += " (" + known.Kind + " " + known.Metadata.Name + ")"
	}
	text := strings.TrimPrefix(err.Error(), found[0])
	if found[2] != "" && found[2] != "inputs" {
		text = found[2] + ": " + text
	}
	return &explainedError{place + ": " + text, err}
}

// explainedError is an error with another text.
type explainedError struct {
	text string
	err  error
}

func (e *explainedError) Error() string { return e.text }

// Unwrap returns the error of the template.
func (e *explainedError) Unwrap() error { return e.err }

func toYAML(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return string(text), err
}
