package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/validate/schema"
)

// document contains the relevant fields of an OpenAPI document.
type document struct {
	Paths map[string]struct {
		Post *struct {
			Action string     `json:"x-kubernetes-action"`
			Kind   schema.GVK `json:"x-kubernetes-group-version-kind"`
			Body   struct {
				Content map[string]struct{ Schema reference } `json:"content"`
			} `json:"requestBody"`
		} `json:"post"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]published `json:"schemas"`
	} `json:"components"`
}

type reference struct {
	Ref string `json:"$ref"`
}

func (r reference) name() string { return strings.TrimPrefix(r.Ref, "#/components/schemas/") }

// published is a schema published by the API server.
type published struct {
	reference
	Type       string               `json:"type"`
	Format     string               `json:"format"`
	Enum       []string             `json:"enum"`
	Required   []string             `json:"required"`
	Properties map[string]published `json:"properties"`
	Items      *published           `json:"items"`
	Additional *published           `json:"additionalProperties"`
	AllOf      []reference          `json:"allOf"`
}

// generate returns the minor version of the server and its schemas, without descriptions.
func generate(ctx context.Context, client *kube.Client) (version string, content []byte, err error) {
	raw := func(path string, into any) error {
		text, err := client.Raw(ctx, path)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, into)
	}
	var server struct{ Major, Minor string }
	if err := raw("/version", &server); err != nil {
		return "", nil, err
	}
	var index struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := raw("/openapi/v3", &index); err != nil {
		return "", nil, err
	}
	set := schema.Set{Schemas: map[string]*schema.Schema{}}
	for _, path := range slices.Sorted(maps.Keys(index.Paths)) {
		var d document
		if err := raw("/openapi/v3/"+path, &d); err != nil {
			return "", nil, err
		}
		add(&set, d)
	}
	slices.SortFunc(set.Kinds, func(a, b schema.Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
	content, err = compressed(set)
	return server.Major + "." + strings.TrimSuffix(server.Minor, "+"), content, err
}

// add adds the kinds in a document that can be created, and the schemas that they refer to.
func add(set *schema.Set, d document) {
	for path, item := range d.Paths {
		if item.Post == nil || item.Post.Action != "post" || strings.Contains(path, "{name}") {
			continue
		}
		body := item.Post.Body.Content["*/*"]
		if body.Schema.Ref == "" {
			body = item.Post.Body.Content["application/json"]
		}
		set.Kinds = append(set.Kinds, schema.Kind{GVK: item.Post.Kind, Schema: body.Schema.name(), Namespaced: strings.Contains(path, "{namespace}")})
		addSchema(set, d.Components.Schemas, body.Schema.name())
	}
}

func addSchema(set *schema.Set, all map[string]published, name string) {
	if set.Schemas[name] != nil {
		return
	}
	set.Schemas[name] = &schema.Schema{} // a schema can contain itself
	*set.Schemas[name] = *all[name].compact(func(name string) { addSchema(set, all, name) })
}

// compact returns the schema without fields that are not validated, and calls refer for each
// referenced schema.
func (p published) compact(refer func(name string)) *schema.Schema {
	ref := p.name()
	if len(p.AllOf) == 1 {
		ref = p.AllOf[0].name()
	}
	s := &schema.Schema{Ref: ref, Type: p.Type, Format: p.Format, Enum: p.Enum, Required: p.Required}
	if ref != "" {
		refer(ref)
	}
	if p.Items != nil {
		s.Items = p.Items.compact(refer)
	}
	if p.Additional != nil {
		s.Additional = p.Additional.compact(refer)
	}
	for name, property := range p.Properties {
		if s.Properties == nil {
			s.Properties = map[string]*schema.Schema{}
		}
		s.Properties[name] = property.compact(refer)
	}
	return s
}

func compressed(set schema.Set) ([]byte, error) {
	text, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("compressing the schemas: %w", err)
	}
	err = w.Close()
	return b.Bytes(), err
}
