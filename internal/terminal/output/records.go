package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
)

// Records prints objects one by one: one JSON object per line, YAML documents, or one line per object in other
// formats. Rows of custom columns are omitted if they equal the previous row of the same object.
type Records struct {
	w      io.Writer
	format string
	print  func(o *unstructured.Unstructured, deleted bool) error
	begun  bool
}

// NewRecords returns Records in an -o format that prints objects.
func NewRecords(w io.Writer, format string, given ...Option) (*Records, error) {
	printer, err := ObjectPrinter(format, given...)
	if err != nil {
		return nil, err
	}
	r := &Records{w: w, format: format}
	switch p := printer.(type) {
	case *printers.NamePrinter:
		r.print = r.name
	case *columnPrinter:
		printed := map[string][]string{}
		r.print = func(o *unstructured.Unstructured, deleted bool) error { return r.row(p, printed, o, deleted) }
	default:
		r.print = func(o *unstructured.Unstructured, _ bool) error { return r.line(printer, o) }
	}
	switch format {
	case "json":
		r.print = r.json
	case "yaml":
		r.print = r.yaml
	}
	return r, nil
}

// Print prints one object. For a deleted object, it prints the last state including metadata.deletionTimestamp.
func (r *Records) Print(o *unstructured.Unstructured, deleted bool) error {
	if err := r.print(o, deleted); err != nil {
		return fmt.Errorf("printing %s: %w", o.GetName(), err)
	}
	r.begun = true
	return nil
}

func (r *Records) json(o *unstructured.Unstructured, _ bool) error {
	line, err := json.Marshal(bare(o))
	if err != nil {
		return err
	}
	_, err = r.w.Write(append(line, '\n'))
	return err
}

func (r *Records) yaml(o *unstructured.Unstructured, _ bool) error {
	document, err := YAML(bare(o))
	if err != nil {
		return err
	}
	if r.begun {
		document = append([]byte("---\n"), document...)
	}
	_, err = r.w.Write(document)
	return err
}

func (r *Records) name(o *unstructured.Unstructured, deleted bool) error {
	var p printers.NamePrinter
	if deleted {
		p.Operation = "deleted"
	}
	return p.PrintObj(o, r.w)
}

// row prints the custom columns of an object if they have changed.
func (r *Records) row(p *columnPrinter, printed map[string][]string, o *unstructured.Unstructured, deleted bool) error {
	key, row := o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName(), p.row(o.Object)
	if !deleted && slices.Equal(printed[key], row) {
		return nil
	}
	printed[key] = row
	return p.write(r.w, [][]string{row})
}

// line adds a line break for formats without one, such as JSONPath.
func (r *Records) line(p printers.ResourcePrinter, o *unstructured.Unstructured) error {
	var b bytes.Buffer
	if err := p.PrintObj(o, &b); err != nil {
		return err
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\n")) {
		b.WriteByte('\n')
	}
	_, err := r.w.Write(b.Bytes())
	return err
}

// bare returns the object without the managed fields, which other printers omit as well.
func bare(o *unstructured.Unstructured) map[string]any {
	u := o.DeepCopy()
	u.SetManagedFields(nil)
	return u.Object
}
