package manifests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

const accepted = "must be a YAML file with a whole installation, as printed by `flux install --export`, " +
	"or a directory of YAML files with one"

// FromDir returns the manifests in a file, or in the YAML files of a directory in
// the order of their names, without subdirectories. The manifests must be rendered:
// options are not applied.
func FromDir(path string) (*Set, error) {
	files, err := yamlFiles(path)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	set := &Set{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		objects, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("reading manifests %s: %w", file, err)
		}
		set.objects = append(set.objects, objects...)
	}
	if err := set.describe(); err != nil {
		return nil, fmt.Errorf("reading manifests %s: %w: %s", path, err, accepted)
	}
	return set, nil
}

func yamlFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		extension := filepath.Ext(entry.Name())
		if entry.IsDir() || extension != ".yaml" && extension != ".yml" {
			continue
		}
		if strings.TrimSuffix(entry.Name(), extension) == "kustomization" {
			return nil, fmt.Errorf("%s is a kustomization: build it with `kubectl kustomize %s > flux.yaml` and use that file",
				filepath.Join(path, entry.Name()), path)
		}
		files = append(files, filepath.Join(path, entry.Name()))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no YAML file in %s: %s", path, accepted)
	}
	return files, nil
}

// describe determines the components and the namespace from the objects.
func (s *Set) describe() error {
	seen := map[string]bool{}
	for _, object := range s.objects {
		name := object.GetKind() + " " + object.GetName()
		key := object.GroupVersionKind().Group + " " + name + " " + object.GetNamespace()
		if seen[key] {
			return fmt.Errorf("duplicate object %s", name)
		}
		seen[key] = true
		if object.GetName() == "" {
			return fmt.Errorf("%s without a name", object.GetKind())
		}
		if err := s.take(object); err != nil {
			return err
		}
	}
	if len(s.Components) == 0 {
		return errors.New("no Flux controller found")
	}
	if !seen[" Namespace "+s.Namespace+" "] {
		return fmt.Errorf("no Namespace object %q", s.Namespace)
	}
	return nil
}

// take records the properties of the installation that an object contains.
func (s *Set) take(object *unstructured.Unstructured) error {
	if object.GetKind() != "Deployment" {
		return nil
	}
	name, namespace := object.GetName(), object.GetNamespace()
	if _, known := controllers.Find(name); !known {
		return nil
	}
	if namespace == "" {
		return fmt.Errorf("deployment %q has no namespace: the manifests are not rendered", name)
	}
	if s.Namespace != "" && s.Namespace != namespace {
		return fmt.Errorf("controllers in two namespaces: %q and %q", s.Namespace, namespace)
	}
	s.Namespace = namespace
	if version := object.GetLabels()["app.kubernetes.io/version"]; s.Version == "" {
		s.Version = version
	}
	s.Components = append(s.Components, name)
	return nil
}
