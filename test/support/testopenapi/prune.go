package testopenapi

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
)

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// shape returns a path without the names of its parameters.
func shape(path string) string { return parameter.ReplaceAllString(path, "{}") }

// prune removes all operations of a description except the given ones, and all components
// that they do not refer to: descriptions are up to 11 MB in size.
func prune(doc map[string]any, failure string, operations []string) error {
	wanted := map[string]bool{}
	for _, operation := range operations {
		wanted[shape(operation)] = true
	}
	all, _ := doc["paths"].(map[string]any)
	kept := map[string]any{}
	for path, value := range all {
		item, _ := value.(map[string]any)
		for key := range item {
			method := strings.ToUpper(key) + " " + shape(path)
			switch {
			case wanted[method]:
				kept[path] = item
				delete(wanted, method)
			case key != "parameters":
				delete(item, key)
			}
		}
	}
	for operation := range wanted {
		return fmt.Errorf("the description has no operation %s", operation)
	}
	doc["paths"] = kept
	doc["servers"] = []any{map[string]any{"url": "/"}}
	delete(doc, "x-webhooks")
	pruneComponents(doc, failure)
	return nil
}

// componentSections lists the locations of components in descriptions of versions 3 and
// 2.
var componentSections = []string{"components/schemas", "components/parameters", "components/responses", "components/headers", "components/examples", "definitions", "responses", "parameters"}

func pruneComponents(doc map[string]any, failure string) {
	found := map[string]bool{}
	refer(doc, doc["paths"], found)
	if failure != "" {
		refer(doc, map[string]any{"$ref": "#/components/schemas/" + failure}, found)
	}
	for _, section := range componentSections {
		components, _ := lookup(doc, section).(map[string]any)
		for name := range components {
			if !found["#/"+section+"/"+name] {
				delete(components, name)
			}
		}
	}
}

// refer adds the references of a value, and the references of their targets.
func refer(doc map[string]any, value any, found map[string]bool) {
	switch v := value.(type) {
	case []any:
		for _, entry := range v {
			refer(doc, entry, found)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && !found[ref] {
			found[ref] = true
			refer(doc, lookup(doc, strings.TrimPrefix(ref, "#/")), found)
		}
		for _, entry := range v {
			refer(doc, entry, found)
		}
	}
}

func lookup(doc map[string]any, path string) any {
	var at any = doc
	for part := range strings.SplitSeq(path, "/") {
		object, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = object[part]
	}
	return at
}

func newRoute(doc *openapi3.T, path, method string, item *openapi3.PathItem) *routers.Route {
	return &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)}
}
