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

const accepted = "want a YAML file that holds a whole installation, as `flux install --export` prints it, " +
	"or a folder of such files that make one together"

// FromDir returns the manifests at a path: a file, or a folder whose YAML files
// are read in the order of their names, folders within it left out. They have to
// be rendered, since nothing is filled in: the options of an installation are
// those that the manifests were rendered with.
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
			return nil, fmt.Errorf("%s is to be built first: kubectl kustomize %s > flux.yaml, then give that file",
				filepath.Join(path, entry.Name()), path)
		}
		files = append(files, filepath.Join(path, entry.Name()))
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no YAML file in %s: %s", path, accepted)
	}
	return files, nil
}

// describe finds out what the objects install and where.
func (s *Set) describe() error {
	seen := map[string]bool{}
	for _, object := range s.objects {
		name := object.GetKind() + " " + object.GetName()
		key := object.GroupVersionKind().Group + " " + name + " " + object.GetNamespace()
		if seen[key] {
			return fmt.Errorf("%s is there twice", name)
		}
		seen[key] = true
		if object.GetName() == "" {
			return fmt.Errorf("a %s has no name", object.GetKind())
		}
		if err := s.take(object); err != nil {
			return err
		}
	}
	if len(s.Components) == 0 {
		return errors.New("there is no controller of Flux in it")
	}
	if !seen[" Namespace "+s.Namespace+" "] {
		return fmt.Errorf("namespace %q is not in it", s.Namespace)
	}
	return nil
}

// take notes what one object tells about the installation.
func (s *Set) take(object *unstructured.Unstructured) error {
	if object.GetKind() != "Deployment" {
		return nil
	}
	name, namespace := object.GetName(), object.GetNamespace()
	if _, known := controllers.Find(name); !known {
		return nil
	}
	if namespace == "" {
		return fmt.Errorf("deployment %q has no namespace, so this is the source of manifests and not yet rendered", name)
	}
	if s.Namespace != "" && s.Namespace != namespace {
		return fmt.Errorf("controllers are in two namespaces, %q and %q", s.Namespace, namespace)
	}
	s.Namespace = namespace
	if version := object.GetLabels()["app.kubernetes.io/version"]; s.Version == "" {
		s.Version = version
	}
	s.Components = append(s.Components, name)
	return nil
}
