package buildflags

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/controllers"
)

// AddLocal adds the flags for local replacements of remote systems: source directories, and inputs of
// ResourceSets.
func (o *Options) AddLocal(cmd *cobra.Command) {
	o.mapped.Add(cmd)
	o.AddInputs(cmd)
}

// AddInputs adds the flag for the inputs of ResourceSets.
func (o *Options) AddInputs(cmd *cobra.Command) { o.inputs.Add(cmd) }

// Inputs holds the values of the flag for the inputs of ResourceSets.
type Inputs []string

// Add adds the flag.
func (i *Inputs) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar((*[]string)(i), "inputs", nil, "inputs of a ResourceSetInputProvider as NAMESPACE/NAME=FILE: a JSON or YAML file with a list of inputs, or with the provider and its status (repeatable)")
}

// ReadLocal reads the values of the flags into the options.
func (o *Options) ReadLocal(ctx context.Context, a *app.App) (err error) {
	if o.Mappings, err = o.mapped.All(ctx); err != nil {
		return err
	}
	o.Options.Inputs, err = o.inputs.Read(ctx, a)
	return err
}

// Read returns the inputs by the IDs of their providers.
func (i *Inputs) Read(ctx context.Context, a *app.App) (map[controllers.ID][]map[string]any, error) {
	var all map[controllers.ID][]map[string]any
	for _, text := range *i {
		name, file, _ := strings.Cut(text, "=")
		namespace, name, ok := strings.Cut(name, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") || file == "" {
			return nil, hint.Errorf("use the form NAMESPACE/NAME=FILE", "invalid value %q of --inputs", text)
		}
		content, err := app.ReadInput(ctx, a, file)
		if err != nil {
			return nil, err
		}
		inputs, err := parseInputs(content)
		if err != nil {
			return nil, hint.Errorf("write a list of inputs, or use the output of kubectl get resourcesetinputprovider "+hint.Quote(name)+" -o yaml", "reading the inputs in %s: %w", file, err)
		}
		if all == nil {
			all = map[controllers.ID][]map[string]any{}
		}
		all[controllers.ID{Group: controllers.OperatorGroup, Kind: controllers.InputProvider, Namespace: namespace, Name: name}] = inputs
	}
	return all, nil
}

// parseInputs parses a list of inputs, or a provider whose status contains them.
func parseInputs(text []byte) ([]map[string]any, error) {
	var content any
	if err := budget.Unmarshal("", text, &content); err != nil {
		return nil, err
	}
	if provider, ok := content.(map[string]any); ok {
		exported, found, _ := unstructured.NestedSlice(provider, "status", "exportedInputs")
		if !found {
			return nil, errNoInputs
		}
		content = exported
	}
	list, ok := content.([]any)
	if !ok {
		return nil, errNoInputs
	}
	inputs := []map[string]any{}
	for i, input := range list {
		set, ok := input.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("input %d is not a map", i+1)
		}
		inputs = append(inputs, set)
	}
	return inputs, nil
}

var errNoInputs = errors.New("the file contains neither a list nor status.exportedInputs")
