package main

import (
	"context"
	"encoding/base64"
	"maps"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/yaml"
)

const kustomizeGroup = "kustomize.toolkit.fluxcd.io"

// objectsOf builds k in the tree at root like kustomize-controller.
func (c *cluster) objectsOf(k *unstructured.Unstructured, root string) (objects []*unstructured.Unstructured, err error) {
	path, _, _ := unstructured.NestedString(k.Object, "spec", "path")
	dir := filepath.Join(root, path)
	action, err := kustomize.NewGenerator(root, *k).WriteFile(dir, kustomize.WithSaveOriginalKustomization())
	if err != nil {
		return nil, err
	}
	// The next Kustomization can have the same directory.
	defer func() {
		if cleaned := kustomize.CleanDirectory(dir, action); err == nil {
			err = cleaned
		}
	}()
	built, err := kustomize.SecureBuild(root, dir, false)
	if err != nil {
		return nil, err
	}
	if err := c.substitute(k, built); err != nil {
		return nil, err
	}
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML() // as the controller encodes it
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return nil, err
		}
		if err := annotate(k, object); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// annotate adds the labels and annotations of spec.commonMetadata.
func annotate(k, object *unstructured.Unstructured) error {
	for _, field := range []string{"labels", "annotations"} {
		added, _, _ := unstructured.NestedStringMap(k.Object, "spec", "commonMetadata", field)
		for name, value := range added {
			if err := unstructured.SetNestedField(object.Object, value, "metadata", field, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// substitute replaces the variables of spec.postBuild. The values of substituteFrom are
// moved to substitute, so that the library does not require a cluster.
func (c *cluster) substitute(k *unstructured.Unstructured, built resmap.ResMap) error {
	if _, found, _ := unstructured.NestedMap(k.Object, "spec", "postBuild"); !found {
		return nil
	}
	values := c.values(k)
	plain := k.DeepCopy()
	unstructured.RemoveNestedField(plain.Object, "spec", "postBuild", "substituteFrom")
	if err := unstructured.SetNestedStringMap(plain.Object, values, "spec", "postBuild", "substitute"); err != nil {
		return err
	}
	strategy, _, _ := unstructured.NestedString(k.Object, "spec", "postBuild", "substituteStrategy")
	for _, resource := range built.Resources() {
		replaced, err := kustomize.SubstituteVariables(context.Background(), nil, *plain, resource, kustomize.SubstituteWithAlways(strategy == "Always"))
		if err != nil {
			return err
		}
		if replaced == nil {
			continue
		}
		if _, err := built.Replace(resource); err != nil {
			return err
		}
	}
	return nil
}

// values returns the values of spec.postBuild, except for values from missing and
// encrypted objects.
func (c *cluster) values(k *unstructured.Unstructured) map[string]string {
	values := map[string]string{}
	references, _, _ := unstructured.NestedSlice(k.Object, "spec", "postBuild", "substituteFrom")
	for _, reference := range references {
		fields, _ := reference.(map[string]any)
		kind, _ := fields["kind"].(string)
		name, _ := fields["name"].(string)
		object := c.find(kind, k.GetNamespace(), name)
		if object == nil || object.Object["sops"] != nil {
			continue
		}
		data, _, _ := unstructured.NestedStringMap(object.Object, "data")
		for key, value := range data {
			if kind == "Secret" {
				decoded, _ := base64.StdEncoding.DecodeString(value)
				value = string(decoded)
			}
			values[key] = strings.ReplaceAll(value, "\n", "")
		}
		plain, _, _ := unstructured.NestedStringMap(object.Object, "stringData")
		maps.Copy(values, plain)
	}
	substitute, _, _ := unstructured.NestedStringMap(k.Object, "spec", "postBuild", "substitute")
	maps.Copy(values, substitute)
	return values
}
