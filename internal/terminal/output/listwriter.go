package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
)

// ListWriter writes a list object by object, so that memory does not grow with the list. The
// output is identical to the output of PrintObjects.
type ListWriter struct {
	w      *bufio.Writer
	begun  bool
	format listFormat
}

// listFormat holds the fixed parts of a list in an output format.
type listFormat struct {
	empty, begin, between, end, tail string
	item                             func(map[string]any) ([]byte, error)
}

// NewListWriter returns a writer for json, yaml or name, or false for formats that require all objects at once.
func NewListWriter(w io.Writer, format string) (*ListWriter, bool) {
	layouts := map[string]listFormat{
		"json": {
			empty: "{\n    \"apiVersion\": \"v1\",\n    \"items\": []", begin: "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        ",
			between: ",\n        ", end: "\n    ]", tail: jsonTail, item: jsonItem,
		},
		"name": {item: nameItem},
		"yaml": {empty: "apiVersion: v1\nitems: []\n", begin: "apiVersion: v1\nitems:\n", tail: yamlTail, item: yamlItem},
	}
	l, ok := layouts[format]
	return &ListWriter{w: bufio.NewWriterSize(w, 1<<16), format: l}, ok
}

const (
	jsonTail = ",\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
	yamlTail = "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
)

func jsonItem(o map[string]any) ([]byte, error) { return json.MarshalIndent(o, "        ", "    ") }

func nameItem(o map[string]any) ([]byte, error) {
	var b bytes.Buffer
	err := (&printers.NamePrinter{}).PrintObj(&unstructured.Unstructured{Object: o}, &b)
	return b.Bytes(), err
}

func yamlItem(o map[string]any) ([]byte, error) { return Manifest([]any{o}) }

// Add writes an object without its managed fields.
func (l *ListWriter) Add(o map[string]any) error {
	unstructured.RemoveNestedField(o, "metadata", "managedFields")
	text, err := l.format.item(o)
	if err != nil {
		u := unstructured.Unstructured{Object: o}
		return fmt.Errorf("printing %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	before := l.format.between
	if !l.begun {
		before, l.begun = l.format.begin, true
	}
	if _, err := l.w.WriteString(before); err != nil {
		return err
	}
	_, err = l.w.Write(text)
	return err
}

// Close writes the end of the list.
func (l *ListWriter) Close() error {
	end := l.format.end
	if !l.begun {
		end = l.format.empty
	}
	if _, err := l.w.WriteString(end + l.format.tail); err != nil {
		return err
	}
	return l.w.Flush()
}

// Begun reports whether an object has been written.
func (l *ListWriter) Begun() bool { return l.begun }
