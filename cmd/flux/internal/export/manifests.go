package export

import (
	"bufio"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// manifestWriter writes the manifests of objects one by one: a list in JSON,
// documents in YAML.
type manifestWriter struct {
	list      *output.ListWriter
	documents *bufio.Writer
	// single is set if one object was named, which is not a list in JSON. held is that object until
	// no other can follow.
	single bool
	held   controllers.Object
	one    func(controllers.Object) error
}

func newManifestWriter(a *app.App, format string, single bool) *manifestWriter {
	if format == "json" {
		list, _ := output.NewListWriter(a.Output(format), format)
		return &manifestWriter{list: list, single: single, one: func(o controllers.Object) error {
			return output.PrintObjects(a.Output(format), format, []unstructured.Unstructured{{Object: o}}, true)
		}}
	}
	return &manifestWriter{documents: bufio.NewWriter(a.Output(format))}
}

func (w *manifestWriter) add(o controllers.Object) error {
	manifest := controllers.Manifest(o)
	if w.list != nil {
		return w.addItem(manifest)
	}
	text, err := output.Manifest(manifest)
	if err != nil {
		return fmt.Errorf("printing %s %q: %w", o["kind"], controllers.Name(o), err)
	}
	document := append([]byte("---\n"), text...)
	// After an error the output ends with a complete document.
	if len(document) > w.documents.Available() {
		if err := w.flush(); err != nil {
			return err
		}
	}
	_, err = w.documents.Write(document)
	return err
}

// addItem adds an object to the list.
func (w *manifestWriter) addItem(manifest controllers.Object) error {
	if w.single && w.held == nil {
		w.held = manifest
		return nil
	}
	if w.single {
		w.single = false
		if err := w.list.Add(w.held); err != nil {
			return err
		}
	}
	return w.list.Add(manifest)
}

// flush writes the buffered documents. An incomplete JSON list is not closed, so that it is invalid
// instead of looking complete.
func (w *manifestWriter) flush() error {
	if w.list != nil {
		return nil
	}
	return w.documents.Flush()
}

// close writes the end of the output, or nothing if no named object exists.
func (w *manifestWriter) close() error {
	switch {
	case w.list == nil:
		return w.flush()
	case w.single && w.held != nil:
		return w.one(w.held)
	case !w.list.Begun():
		return nil
	}
	return w.list.Close()
}
