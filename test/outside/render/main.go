// Command render builds the Kustomizations of a cluster with the build library of
// kustomize-controller, and prints their objects as JSON.
//
//	render -path clusters/production [-branch main] [-url URL]... TREE
//
// TREE is a copy of the repository, in which the command writes files. The sources
// are the repository itself, identified by the URLs of its remotes, and the
// ExternalArtifacts that ArtifactGenerators copy from it. Kustomizations with other
// sources, and those that cannot be built, are printed without objects. ConfigMaps and Secrets of substituteFrom are
// read from the cluster's Kustomizations; variables from missing ones are empty.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("render", flag.ContinueOnError)
	path := flags.String("path", "", "directory of the cluster")
	branch := flags.String("branch", "main", "branch of TREE")
	urls := map[string]bool{}
	flags.Func("url", "URL of the repository", func(url string) error { urls[url] = true; return nil })
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: render -path DIRECTORY [-branch NAME] [-url URL]... TREE")
	}
	c := &cluster{tree: flags.Arg(0), urls: urls, branch: *branch, artifacts: map[string]string{}}
	root := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kustomizeGroup + "/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "flux-system", "namespace": "flux-system"},
		"spec": map[string]any{
			"path": "./" + *path, "prune": true,
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "flux-system"},
		},
	}}
	owners, err := c.settle(root)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(owners)
}

// owner is a Kustomization with its objects, or the reason why it was not built or could not be built.
type owner struct {
	Namespace string                       `json:"namespace"`
	Name      string                       `json:"name"`
	Skipped   string                       `json:"skipped,omitempty"`
	Failed    string                       `json:"failed,omitempty"`
	Prune     bool                         `json:"prune"`
	Objects   []*unstructured.Unstructured `json:"objects"`
}

// cluster contains the Kustomizations of a cluster and their objects.
type cluster struct {
	tree   string
	branch string
	urls   map[string]bool
	// objects contains the objects of all Kustomizations that were built so far.
	objects []*unstructured.Unstructured
	// artifacts maps the keys of ExternalArtifacts to their directories.
	artifacts map[string]string
}

// settle repeats the build until the objects that Kustomizations refer to no longer
// change: a ConfigMap may be built after the Kustomization that reads it.
func (c *cluster) settle(root *unstructured.Unstructured) ([]*owner, error) {
	before := ""
	for range 5 {
		owners, err := c.build(root)
		if err != nil {
			return nil, err
		}
		c.objects = nil
		for _, o := range owners {
			c.objects = append(c.objects, o.Objects...)
		}
		state, err := json.Marshal(owners)
		if err != nil {
			return nil, err
		}
		if string(state) == before {
			return owners, nil
		}
		before = string(state)
	}
	return nil, errors.New("the objects still change after five builds")
}

// build builds root and all Kustomizations below it, each once.
func (c *cluster) build(root *unstructured.Unstructured) ([]*owner, error) {
	var owners []*owner
	seen := map[string]bool{}
	for queue := []*unstructured.Unstructured{root}; len(queue) > 0; queue = queue[1:] {
		k := queue[0]
		key := k.GetNamespace() + "/" + k.GetName()
		if seen[key] {
			continue
		}
		seen[key] = true
		o := &owner{Namespace: k.GetNamespace(), Name: k.GetName()}
		o.Prune, _, _ = unstructured.NestedBool(k.Object, "spec", "prune")
		owners = append(owners, o)
		dir, skipped, err := c.source(k)
		if err != nil {
			return nil, fmt.Errorf("source of %s/%s: %w", o.Namespace, o.Name, err)
		}
		if o.Skipped = skipped; skipped != "" {
			continue
		}
		if o.Objects, err = c.objectsOf(k, dir); err != nil {
			o.Objects, o.Failed = nil, err.Error()
			continue
		}
		for _, object := range o.Objects {
			if object.GetKind() == "Kustomization" && strings.HasPrefix(object.GetAPIVersion(), kustomizeGroup+"/") {
				queue = append(queue, object)
			}
		}
	}
	return owners, nil
}

// source returns the directory of the source of k, or the reason why it is unavailable.
func (c *cluster) source(k *unstructured.Unstructured) (dir, skipped string, err error) {
	kind, _, _ := unstructured.NestedString(k.Object, "spec", "sourceRef", "kind")
	name, _, _ := unstructured.NestedString(k.Object, "spec", "sourceRef", "name")
	namespace, _, _ := unstructured.NestedString(k.Object, "spec", "sourceRef", "namespace")
	if namespace == "" {
		namespace = k.GetNamespace()
	}
	key := kind + "/" + namespace + "/" + name
	switch kind {
	case "GitRepository":
		if !c.ours(namespace, name) {
			return "", key + " is another repository or revision", nil
		}
		return c.tree, "", nil
	case "ExternalArtifact":
		dir, err := c.artifact(namespace, name)
		if dir == "" && err == nil {
			return "", key + " has no ArtifactGenerator in the repository", nil
		}
		return dir, "", err
	default:
		return "", key + " is not in the repository", nil
	}
}

// ours reports whether a GitRepository refers to the repository itself. The GitRepository
// of bootstrap may not be in Git, and others may not be built yet.
func (c *cluster) ours(namespace, name string) bool {
	o := c.find("GitRepository", namespace, name)
	if o == nil {
		return namespace == "flux-system" && name == "flux-system"
	}
	url, _, _ := unstructured.NestedString(o.Object, "spec", "url")
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "ref")
	for kind, value := range ref {
		if kind != "branch" || value != c.branch {
			return false
		}
	}
	return c.urls[url]
}

func (c *cluster) find(kind, namespace, name string) *unstructured.Unstructured {
	for _, o := range c.objects {
		if o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name {
			return o
		}
	}
	return nil
}

// artifact copies the files of an ExternalArtifact according to its ArtifactGenerator.
func (c *cluster) artifact(namespace, name string) (string, error) {
	key := namespace + "/" + name
	if dir, ok := c.artifacts[key]; ok {
		return dir, nil
	}
	for _, o := range c.objects {
		if o.GetKind() != "ArtifactGenerator" || o.GetNamespace() != namespace {
			continue
		}
		outputs, _, _ := unstructured.NestedSlice(o.Object, "spec", "artifacts")
		for _, output := range outputs {
			fields, _ := output.(map[string]any)
			if fields["name"] != name {
				continue
			}
			dir := filepath.Join(filepath.Dir(c.tree), "artifact-"+namespace+"-"+name)
			if err := c.copyAll(o, fields, dir); err != nil {
				return "", fmt.Errorf("ArtifactGenerator %s: %w", o.GetName(), err)
			}
			c.artifacts[key] = dir
			return dir, nil
		}
	}
	return "", nil
}

// copyAll supports only copies of whole directories of the repository.
func (c *cluster) copyAll(generator *unstructured.Unstructured, output map[string]any, to string) error {
	aliases := map[string]bool{}
	sources, _, _ := unstructured.NestedSlice(generator.Object, "spec", "sources")
	for _, source := range sources {
		fields, _ := source.(map[string]any)
		name, _ := fields["name"].(string)
		alias, _ := fields["alias"].(string)
		aliases[alias] = fields["kind"] == "GitRepository" && c.ours(generator.GetNamespace(), name)
	}
	copies, _ := output["copy"].([]any)
	for _, one := range copies {
		fields, _ := one.(map[string]any)
		if len(fields) != 2 {
			return fmt.Errorf("unsupported copy: %v", fields)
		}
		from, _ := fields["from"].(string)
		target, _ := fields["to"].(string)
		alias, dir, _ := strings.Cut(strings.TrimPrefix(from, "@"), "/")
		dir, all := strings.CutSuffix(dir, "/**")
		target, inside := strings.CutPrefix(target, "@artifact/")
		if !aliases[alias] || !all || !inside || strings.ContainsAny(dir, "*?[{") {
			return fmt.Errorf("unsupported copy from %s", from)
		}
		if err := os.CopyFS(filepath.Join(to, target), os.DirFS(filepath.Join(c.tree, dir))); err != nil {
			return err
		}
	}
	return nil
}
