package desired

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Vars returns the substitution variables of the options: Set overrides VarsFile. secret holds the names of the variables that
// come from a Secret.
func (o *Options) Vars() (vars map[string]string, secret []string, err error) {
	vars = map[string]string{}
	if o.VarsFile != "" {
		text, err := os.ReadFile(o.VarsFile)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the variables: %w", err)
		}
		var fromSecret bool
		if vars, fromSecret, err = readVars(text); err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", o.VarsFile, err)
		}
		if fromSecret && o.Untrusted {
			return nil, nil, hint.Errorf("use a ConfigMap, or --untrusted=false if you trust the author", "%s is a Secret: %w", o.VarsFile, build.ErrUntrusted)
		}
		for name := range vars {
			if _, given := o.Set[name]; fromSecret && !given {
				secret = append(secret, name)
			}
		}
	}
	for name, value := range o.Set {
		vars[name] = value
	}
	return vars, secret, nil
}

// readVars reads variables from a ConfigMap, a Secret, a map or lines, and
// reports whether it was a Secret.
func readVars(text []byte) (vars map[string]string, secret bool, err error) {
	var object map[string]any
	if err := budget.YAML("", text); err != nil {
		return nil, false, err
	}
	lines := yaml.Unmarshal(text, &object) != nil
	for name := range object {
		lines = lines || strings.Contains(name, "=") // "URL=http: //x" is valid YAML, too
	}
	if lines {
		vars, err = readLines(string(text))
		return vars, false, err
	}
	vars = map[string]string{}
	if kind := object["kind"]; kind == controllers.ConfigMap || kind == controllers.Secret {
		data, err := build.DataOf(&unstructured.Unstructured{Object: object})
		for name, value := range data {
			vars[name] = string(value)
		}
		return vars, kind == controllers.Secret, err
	}
	for name, value := range object {
		switch value.(type) {
		case map[string]any, []any:
			return nil, false, fmt.Errorf("the value of %q is not a string", name)
		}
		vars[name] = fmt.Sprint(value)
	}
	return vars, false, nil
}

// readLines reads NAME=value lines and ignores empty lines and comments.
func readLines(text string) (map[string]string, error) {
	vars := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("line %d is not NAME=value", i+1)
		}
		vars[strings.TrimSpace(name)] = value
	}
	return vars, nil
}
