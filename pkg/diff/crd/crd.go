// Package crd reads the CustomResourceDefinitions that a change applies, and validates objects that the
// server cannot validate yet.
package crd

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Definition holds the versions that a CRD will serve.
type Definition struct {
	// Shapes holds the schemas of the served versions.
	Shapes        map[string]Schema
	ClusterScoped bool
	// Changed reports whether the CRD exists and differs.
	Changed bool
	// Served lists the versions that the cluster currently serves.
	Served []string
}

// Of returns the definition in a CRD.
func Of(o controllers.Object) Definition {
	d := Definition{ClusterScoped: controllers.Path{"spec.scope"}.String(o) == "Cluster", Shapes: map[string]Schema{}}
	versions, _, _ := unstructured.NestedSlice(o, "spec", "versions")
	for _, v := range versions {
		m, ok := v.(map[string]any)
		if !ok || m["served"] != true {
			continue
		}
		open, _, _ := unstructured.NestedMap(m, "schema", "openAPIV3Schema")
		name := controllers.Path{"name"}.String(m)
		d.Shapes[name] = open
		d.Served = append(d.Served, name)
	}
	return d
}

// Kind returns the kind that a CRD defines.
func Kind(o controllers.Object) schema.GroupKind {
	return schema.GroupKind{Group: controllers.Path{"spec.group"}.String(o), Kind: controllers.Path{"spec.names.kind"}.String(o)}
}

// Defaults returns the fields that the server defaults in a CRD.
func Defaults(o controllers.Object) map[string]any {
	kind := Kind(o).Kind
	return map[string]any{"spec": map[string]any{
		"conversion": map[string]any{"strategy": "None"},
		"names":      map[string]any{"singular": strings.ToLower(kind), "listKind": kind + "List"},
	}}
}
