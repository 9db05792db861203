package output

import (
	"encoding/json"
	"fmt"
	"io"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/terminal/printable"
)

// Manifest encodes an object with the same result as sigs.k8s.io/yaml, but without
// converting it to JSON first, which would take three times as long.
func Manifest(object any) ([]byte, error) { return goyaml.Marshal(object) }

// YAML encodes a value like sigs.k8s.io/yaml, but also supports DEL and C1 control characters in
// strings, which the API server accepts and sigs.k8s.io/yaml does not.
func YAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML([]byte(printable.JSON(string(text))))
}

// yamlPrinter prints an object as a YAML document.
type yamlPrinter struct{}

// PrintObj implements [printers.ResourcePrinter].
func (yamlPrinter) PrintObj(o runtime.Object, w io.Writer) error {
	text, err := YAML(o)
	if err != nil {
		return fmt.Errorf("encoding YAML: %w", err)
	}
	_, err = w.Write(text)
	return err
}
