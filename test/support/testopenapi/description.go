// Package testopenapi compares the HTTP requests and responses of tests with
// the OpenAPI description that a vendor publishes, so that a stand-in for a Git
// host cannot drift from the host.
package testopenapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// Description is the description of the operations that a program uses.
type Description struct {
	doc *openapi3.T
	// prefix is the path of the API on its server, such as "/api/v3".
	prefix string
	// failure is the name of the schema of error responses, "" for none.
	failure    string
	operations *http.ServeMux
}

// Parse reads an OpenAPI 3 or Swagger 2 description in JSON and keeps the given
// operations, such as "GET /repos/{owner}/{repo}". Names of path parameters are
// irrelevant; a trailing parameter {...} matches the rest of the path.
func Parse(text []byte, prefix, failure string, operations []string) (*Description, error) {
	var raw map[string]any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("reading the description: %w", err)
	}
	if err := prune(raw, failure, operations); err != nil {
		return nil, err
	}
	pruned, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	d := &Description{prefix: prefix, failure: failure, operations: http.NewServeMux()}
	if raw["swagger"] != nil {
		d.doc, err = convert(pruned)
	} else {
		d.doc, err = openapi3.NewLoader().LoadFromData(pruned)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the description: %w", err)
	}
	for path, item := range d.doc.Paths.Map() {
		for method := range item.Operations() {
			pattern := method + " " + path
			if slices.ContainsFunc(operations, func(o string) bool { return strings.HasSuffix(o, "/{...}") && shape(o) == shape(pattern) }) {
				pattern = strings.TrimSuffix(pattern, "}") + "...}"
			}
			d.operations.Handle(pattern, http.NotFoundHandler())
		}
	}
	return d, nil
}

func convert(swagger []byte) (*openapi3.T, error) {
	var doc openapi2.T
	if err := json.Unmarshal(swagger, &doc); err != nil {
		return nil, err
	}
	return openapi2conv.ToV3(&doc)
}

// Check returns an error if a request or its response differs from the description.
func (d *Description) Check(r *http.Request, body []byte, response *http.Response, answer []byte) error {
	input, err := d.find(r, body)
	if err != nil {
		return err
	}
	return differences(r, response, d.request(input, body, response), d.response(r.Context(), input, response, answer))
}

// CheckRequest returns an error if a request differs from the description. It is used
// with real hosts, whose responses are correct even if they differ.
func (d *Description) CheckRequest(r *http.Request, body []byte, response *http.Response) error {
	input, err := d.find(r, body)
	if err != nil {
		return err
	}
	return differences(r, response, d.request(input, body, response))
}

func differences(r *http.Request, response *http.Response, found ...error) error {
	if err := errors.Join(found...); err != nil {
		return fmt.Errorf("%s %s %d: %w", r.Method, r.URL.RequestURI(), response.StatusCode, err)
	}
	return nil
}

// request compares a request. A write that the host rejects can be invalid on purpose.
func (d *Description) request(input *openapi3filter.RequestValidationInput, body []byte, response *http.Response) error {
	if input.Request.Method != http.MethodGet && response.StatusCode >= http.StatusBadRequest {
		return nil
	}
	return errors.Join(openapi3filter.ValidateRequest(input.Request.Context(), input), d.undocumented(input, body))
}

// find returns the operation of a request.
func (d *Description) find(r *http.Request, body []byte) (*openapi3filter.RequestValidationInput, error) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), d.prefix)
	if !ok {
		return nil, fmt.Errorf("%s %s is not below %s", r.Method, r.URL.Path, d.prefix)
	}
	place, err := url.Parse(path)
	if err != nil {
		return nil, err
	}
	request := r.Clone(r.Context())
	request.URL.Path, request.URL.RawPath = place.Path, place.RawPath
	request.Body = io.NopCloser(bytes.NewReader(body))
	_, pattern := d.operations.Handler(request)
	if pattern == "" {
		return nil, fmt.Errorf("the description has no operation %s %s", r.Method, r.URL.Path)
	}
	_, template, _ := strings.Cut(strings.Replace(pattern, "...}", "}", 1), " ")
	item := d.doc.Paths.Find(template)
	options := &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true,
	}
	options.WithCustomSchemaErrorFunc(difference)
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: parameters(template, request.URL.EscapedPath()), QueryParams: request.URL.Query(),
		Route: newRoute(d.doc, template, r.Method, item), Options: options,
	}
	return input, nil
}

// parameters returns the values of the parameters of a path.
func parameters(template, path string) map[string]string {
	values := map[string]string{}
	places := strings.Split(template, "/")
	parts := strings.SplitN(path, "/", len(places))
	for i, part := range places {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			value, err := url.PathUnescape(parts[i])
			if err != nil {
				value = parts[i]
			}
			values[strings.TrimSuffix(name, "}")] = value
		}
	}
	return values
}

// undocumented returns an error for query parameters and fields of the body that are not
// in the description. A host ignores them without an error.
func (d *Description) undocumented(input *openapi3filter.RequestValidationInput, body []byte) error {
	operation := input.Route.Operation
	var problems []error
	for name := range input.QueryParams {
		known := operation.Parameters.GetByInAndName(openapi3.ParameterInQuery, name) != nil ||
			input.Route.PathItem.Parameters.GetByInAndName(openapi3.ParameterInQuery, name) != nil
		if !known {
			problems = append(problems, fmt.Errorf("the query parameter %q is not documented", name))
		}
	}
	if operation.RequestBody == nil {
		if len(body) > 0 {
			problems = append(problems, errors.New("the operation has no request body"))
		}
		return errors.Join(problems...)
	}
	if media := operation.RequestBody.Value.Content.Get("application/json"); media != nil {
		problems = append(problems, unknownFields(media.Schema, body))
	}
	return errors.Join(problems...)
}

// response compares a response. Few descriptions list the errors of each operation: an
// error that is not listed must match the schema of errors.
func (d *Description) response(ctx context.Context, input *openapi3filter.RequestValidationInput, response *http.Response, answer []byte) error {
	listed := input.Route.Operation.Responses.Status(response.StatusCode)
	if listed == nil && response.StatusCode >= http.StatusBadRequest && d.failure != "" {
		return d.matches(d.doc.Components.Schemas[d.failure], answer)
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: response.StatusCode, Header: response.Header,
		Body: io.NopCloser(bytes.NewReader(answer)), Options: input.Options,
	}
	if err := openapi3filter.ValidateResponse(ctx, output); err != nil {
		return err
	}
	if listed == nil || response.StatusCode >= http.StatusBadRequest {
		return nil
	}
	media := listed.Value.Content.Get(response.Header.Get("Content-Type"))
	if media == nil {
		return nil
	}
	return unknownFields(media.Schema, answer)
}

func (d *Description) matches(schema *openapi3.SchemaRef, text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return schema.Value.VisitJSON(value, openapi3.MultiErrors(), openapi3.SetSchemaErrorMessageCustomizer(difference))
}

// difference returns the error of a value without the text of its schema.
func difference(err *openapi3.SchemaError) string {
	return "/" + strings.Join(err.JSONPointer(), "/") + ": " + err.Reason
}

// unknownFields returns an error for fields of an object, or of objects in a list, that
// are not in its schema.
func unknownFields(ref *openapi3.SchemaRef, text []byte) error {
	if ref == nil || len(text) == 0 {
		return nil
	}
	schema := ref.Value
	if schema.Items != nil {
		var entries []json.RawMessage
		if err := json.Unmarshal(text, &entries); err != nil {
			return err
		}
		var problems []error
		for _, entry := range entries {
			problems = append(problems, unknownFields(schema.Items, entry))
		}
		return errors.Join(problems...)
	}
	known := properties(schema)
	var fields map[string]any
	if len(known) == 0 || json.Unmarshal(text, &fields) != nil {
		return nil // a schema without fields, or a value that the validation has rejected
	}
	var problems []error
	for name := range fields {
		if !slices.Contains(known, name) {
			problems = append(problems, fmt.Errorf("the field %q is not documented", name))
		}
	}
	return errors.Join(problems...)
}

// properties returns the names of the fields of a schema, including its composed schemas.
func properties(schema *openapi3.Schema) []string {
	var names []string
	for name := range schema.Properties {
		names = append(names, name)
	}
	for _, parts := range []openapi3.SchemaRefs{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for _, part := range parts {
			names = append(names, properties(part.Value)...)
		}
	}
	return names
}
