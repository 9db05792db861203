package output

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// Formats are the values that -o takes wherever objects are listed, as help shows them.
const Formats = "json|yaml|name|wide|jsonpath=…|go-template=…|custom-columns=…"

// ObjectPrinter returns the printer of an -o format that prints whole objects:
// all formats but "" and "wide", which are tables.
func ObjectPrinter(format string) (printers.ResourcePrinter, error) {
	if spec, ok := strings.CutPrefix(format, "custom-columns="); ok {
		return newColumnPrinter(spec)
	}
	flags := genericclioptions.NewPrintFlags("").WithDefaultOutput("")
	flags.OutputFormat = &format
	if flags.NamePrintFlags != nil && format == "name" {
		return &printers.NamePrinter{ShortOutput: false}, nil
	}
	p, err := flags.ToPrinter()
	if err != nil {
		return nil, fmt.Errorf("output format %q is not known: use one of %s", format, Formats)
	}
	return p, nil
}

// List makes one object of several, as kubectl prints them.
func List(items []unstructured.Unstructured) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}},
		Items:  items,
	}
}

// PrintObjects prints objects in a format: a single named one by itself,
// several as a list; names one a line.
func PrintObjects(w io.Writer, format string, items []unstructured.Unstructured, single bool) error {
	p, err := ObjectPrinter(format)
	if err != nil {
		return err
	}
	if _, lines := p.(*printers.NamePrinter); lines {
		for i := range items {
			if err := p.PrintObj(&items[i], w); err != nil {
				return fmt.Errorf("printing %s: %w", items[i].GetName(), err)
			}
		}
		return nil
	}
	if single && len(items) == 1 {
		return p.PrintObj(&items[0], w)
	}
	return p.PrintObj(List(items), w)
}
