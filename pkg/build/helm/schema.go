package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/egress"
)

const (
	// schemaMax is the maximum size of a document that a schema references. schemasMax is the
	// maximum number of such documents.
	schemaMax, schemasMax = 8 << 20, 50
	// schemaFile is the address of the schema of a chart, against which references are resolved.
	schemaFile = "file:///values.schema.json"
)

// validate validates the values of a chart and of its dependencies against their schemas. Unlike
// the validation of Helm, it reads no files and restricts the hosts that a schema may reference.
func validate(ctx context.Context, c *chart.Chart, values common.Values, hosts egress.Hosts) error {
	given, err := values.Table("Values")
	if err != nil {
		return err
	}
	failures := validateChart(&schemaLoader{ctx: ctx, hosts: hosts}, c, given)
	if len(failures) == 0 {
		return nil
	}
	return fmt.Errorf("values don't meet the specifications of the schema(s) in the following chart(s):\n%s", strings.Join(failures, ""))
}

func validateChart(loader *schemaLoader, c *chart.Chart, values map[string]any) []string {
	var failures []string
	if c.Schema != nil {
		if err := validateSchema(loader, c.Schema, values); err != nil {
			text := strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+schemaFile+"#'\n")
			failures = append(failures, c.Name()+":\n"+text+"\n")
		}
	}
	for _, below := range c.Dependencies() {
		given, ok := values[below.Name()].(map[string]any)
		switch {
		case ok:
			failures = append(failures, validateChart(loader, below, given)...)
		case values[below.Name()] != nil:
			failures = append(failures, fmt.Sprintf("%s:\ninvalid type for values: expected object (map), got %T\n", below.Name(), values[below.Name()]))
		}
	}
	return failures
}

func validateSchema(loader *schemaLoader, text []byte, values map[string]any) (err error) {
	defer func() {
		if failed := recover(); failed != nil { // as in Helm, for schemas on which the library panics
			err = fmt.Errorf("unable to validate schema: %v", failed)
		}
	}()
	if err := budget.YAML("values.schema.json", text); err != nil {
		return err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("reading values.schema.json: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(loader)
	if err := compiler.AddResource(schemaFile, schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile(schemaFile)
	if err != nil {
		return err
	}
	return compiled.Validate(values)
}

// schemaLoader loads the documents that a schema references over HTTP from public addresses and
// allowed hosts. It loads no files.
type schemaLoader struct {
	ctx    context.Context // the library passes no context
	hosts  egress.Hosts
	loaded int
}

// Load implements jsonschema.URLLoader.
func (l *schemaLoader) Load(address string) (any, error) {
	if l.loaded++; l.loaded > schemasMax {
		return nil, &budget.ExceededError{Name: "values.schema.json", Fact: fmt.Sprintf("the schema refers to more than %d documents", schemasMax)}
	}
	scheme, _, _ := strings.Cut(address, ":")
	switch scheme {
	case "http", "https":
		return l.fetch(address)
	case "urn": // Helm accepts any value for URNs
		return true, nil
	}
	return nil, errors.New("a schema cannot refer to files")
}

func (l *schemaLoader) fetch(address string) (any, error) {
	vary(l.ctx)
	request, err := http.NewRequestWithContext(l.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	own, err := web.Server{}.Transport()
	if err != nil {
		return nil, err
	}
	defer own.CloseIdleConnections()
	text, err := read(&http.Client{Transport: egress.NewTransport(own, l.hosts)}, request, "the schema", schemaMax)
	if err != nil {
		return nil, err
	}
	if err := budget.YAML(request.URL.Redacted(), text); err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}
