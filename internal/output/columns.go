package output

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// columnPrinter prints custom-columns=HEADER:.path,… which cli-runtime leaves to kubectl.
type columnPrinter struct {
	headers []string
	paths   []*jsonpath.JSONPath
}

func newColumnPrinter(spec string) (*columnPrinter, error) {
	p := &columnPrinter{}
	for _, column := range strings.Split(spec, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return nil, fmt.Errorf("custom column %q is not of the form HEADER:.path", column)
		}
		if !strings.HasPrefix(path, ".") {
			path = "." + path
		}
		j := jsonpath.New(header).AllowMissingKeys(true)
		if err := j.Parse("{" + path + "}"); err != nil {
			return nil, fmt.Errorf("custom column %q: %w", column, err)
		}
		p.headers, p.paths = append(p.headers, header), append(p.paths, j)
	}
	return p, nil
}

// PrintObj prints a row an object, below the headers.
func (p *columnPrinter) PrintObj(obj runtime.Object, w io.Writer) error {
	table := Table{Headers: p.headers}
	for _, o := range contents(obj) {
		table.Rows = append(table.Rows, p.row(o))
	}
	return table.Write(w, true)
}

func (p *columnPrinter) row(o map[string]any) []string {
	row := make([]string, len(p.paths))
	for i, path := range p.paths {
		row[i] = cell(path, o)
	}
	return row
}

func contents(obj runtime.Object) []map[string]any {
	switch o := obj.(type) {
	case *unstructured.UnstructuredList:
		var all []map[string]any
		for _, item := range o.Items {
			all = append(all, item.Object)
		}
		return all
	case *unstructured.Unstructured:
		return []map[string]any{o.Object}
	default:
		return nil
	}
}

func cell(path *jsonpath.JSONPath, o map[string]any) string {
	var b strings.Builder
	if err := path.Execute(&b, o); err != nil || b.Len() == 0 {
		return "<none>"
	}
	return b.String()
}
