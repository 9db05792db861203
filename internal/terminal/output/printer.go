package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// Formats lists the values of -o for lists of objects, for help texts.
const Formats = "json, yaml, name, wide, jsonpath=…, go-template=…, custom-columns=…"

// Option configures how objects are printed.
type Option func(*options)

type options struct {
	noHeader bool
	execute  TemplateFunc
}

// TemplateFunc returns the text of a Go template for an object in JSON.
type TemplateFunc func(template string, object []byte) (string, error)

// Templates sets the function that executes Go templates. Without it, the format go-template is not supported.
func Templates(execute TemplateFunc) Option { return func(o *options) { o.execute = execute } }

// NoHeader omits the headers of custom columns.
func NoHeader(leaveOut bool) Option { return func(o *options) { o.noHeader = leaveOut } }

func optionsOf(given []Option) options {
	var o options
	for _, option := range given {
		option(&o)
	}
	return o
}

// ObjectPrinter returns the printer for an -o format that prints whole objects: all formats
// except "" and "wide", which are tables.
func ObjectPrinter(format string, given ...Option) (printers.ResourcePrinter, error) {
	if spec, ok := strings.CutPrefix(format, "custom-columns="); ok {
		return newColumnPrinter(spec, optionsOf(given).noHeader)
	}
	switch format {
	case "json":
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}, nil
	case "yaml":
		return &printers.OmitManagedFieldsPrinter{Delegate: yamlPrinter{}}, nil
	case "kyaml":
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.KYAMLPrinter{}}, nil
	case "name":
		return &printers.NamePrinter{}, nil
	}
	if kind, template, ok := strings.Cut(format, "="); ok {
		return templatePrinter(kind, template, optionsOf(given).execute)
	}
	return nil, unknownFormat(format)
}

// UnknownFormat returns the error for a value of -o that a command does not support.
func UnknownFormat(format string, allowed ...string) error {
	if len(allowed) == 1 {
		return fmt.Errorf("unknown output format %q: must be %s", format, allowed[0])
	}
	return fmt.Errorf("unknown output format %q: must be one of %s", format, strings.Join(allowed, ", "))
}

func unknownFormat(format string) error {
	return UnknownFormat(format, strings.Split(Formats, ", ")...)
}

// templatePrinter returns the printer for a format with an inline template or, with the
// suffix -file, a template in a file. Missing keys are allowed.
func templatePrinter(kind, template string, execute TemplateFunc) (printers.ResourcePrinter, error) {
	what, inFile := strings.CutSuffix(kind, "-file")
	if inFile && (what == "jsonpath" || what == "go-template") {
		text, err := os.ReadFile(template)
		if err != nil {
			return nil, fmt.Errorf("reading the template of -o %s: %w", kind, err)
		}
		kind, template = what, string(text)
	}
	switch kind {
	case "jsonpath", "jsonpath-as-json":
		p, err := printers.NewJSONPathPrinter(template)
		if err != nil {
			return nil, fmt.Errorf("-o %s: %w", kind, err)
		}
		p.AllowMissingKeys(true)
		p.EnableJSONOutput(kind == "jsonpath-as-json")
		return p, nil
	case "go-template":
		// text/template itself can call any method of any type, so the linker would keep methods that flux does not
		// use.
		tree := parse.New("output")
		tree.Mode = parse.SkipFuncCheck
		if _, err := tree.Parse(template, "", "", map[string]*parse.Tree{}); err != nil {
			return nil, fmt.Errorf("-o %s: %w", kind, err)
		}
		return &goTemplatePrinter{template, execute}, nil
	}
	return nil, unknownFormat(kind)
}

// goTemplatePrinter prints the text of a Go template.
type goTemplatePrinter struct {
	template string
	execute  TemplateFunc
}

// PrintObj implements [printers.ResourcePrinter].
func (p *goTemplatePrinter) PrintObj(o runtime.Object, w io.Writer) error {
	if p.execute == nil {
		return errors.New("-o go-template is not supported")
	}
	object, err := json.Marshal(o)
	if err != nil {
		return err
	}
	text, err := p.execute(p.template, object)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// List returns a v1 List of the items, as printed by kubectl.
func List(items []unstructured.Unstructured) *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}},
		Items:  items,
	}
}

// PrintObjects prints objects in a format: a single object if single is true, and otherwise a list,
// or one name per line.
func PrintObjects(w io.Writer, format string, items []unstructured.Unstructured, single bool, given ...Option) error {
	p, err := ObjectPrinter(format, given...)
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
