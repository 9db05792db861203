package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/konfig"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
)

// errNotPlain is returned for a directory that kustomize must build, if only to report its errors.
var errNotPlain = errors.New("not plain")

// plain builds directories whose kustomizations only list files and directories and set a namespace, as
// most do. It reads YAML with kustomize's library and returns the same objects, but does not compare
// each object with all others a dozen times. For all other input it returns errNotPlain.
type plain struct {
	files *files
	// open holds the parent directories of the current directory.
	open []string
}

func (p *plain) folder(folder string) ([]Object, error) {
	if err := p.files.refused; err != nil {
		return nil, err
	}
	if slices.Contains(p.open, folder) {
		return nil, errNotPlain
	}
	p.open = append(p.open, folder)
	defer func() { p.open = p.open[:len(p.open)-1] }()
	resources, namespace, err := p.kustomization(folder)
	if err != nil {
		return nil, err
	}
	var all []Object
	for _, entry := range resources {
		if strings.Contains(entry, ":") || strings.Contains(entry, "//") || strings.Contains(entry, "?") || path.IsAbs(entry) {
			return nil, errNotPlain // may be a URL
		}
		name := path.Join(folder, entry)
		if strings.HasPrefix(name, "..") {
			return nil, errNotPlain
		}
		objects, err := p.entry(name)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	for _, o := range all {
		if err := setNamespace(o.Object, namespace); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (p *plain) entry(name string) ([]Object, error) {
	if p.files.IsDir(name) {
		return p.folder(name)
	}
	text, err := p.files.read(name)
	if p.files.refused != nil {
		return nil, p.files.refused
	}
	if err != nil {
		return nil, errNotPlain
	}
	objects, err := plainObjects(text)
	if err == nil {
		err = p.files.refuse(p.files.budget.Add(name, int64(len(objects)), budget.Nodes(text)))
	}
	return objects, err
}

// kustomization returns the resources and the namespace of the kustomization of a directory.
func (p *plain) kustomization(folder string) (resources []string, namespace string, err error) {
	var text []byte
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		content, err := p.files.read(path.Join(folder, name))
		if err == nil && text != nil {
			return nil, "", errNotPlain // more than one kustomization file
		}
		if err == nil {
			text = content
		}
	}
	var k struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Resources  []string `json:"resources"`
		Namespace  string   `json:"namespace"`
	}
	if len(text) == 0 || budget.YAML("", text) != nil || yaml.UnmarshalStrict(text, &k) != nil {
		return nil, "", errNotPlain
	}
	known := k.APIVersion == "" || k.APIVersion == "kustomize.config.k8s.io/v1beta1"
	if !known || k.Kind != "" && k.Kind != kustomize.KustomizationKind || len(k.Resources) == 0 {
		return nil, "", errNotPlain
	}
	return k.Resources, k.Namespace, nil
}

// setNamespace sets the namespace of an object unless its kind is cluster-scoped.
func setNamespace(object map[string]any, namespace string) error {
	if namespace == "" {
		return nil
	}
	o := unstructured.Unstructured{Object: object}
	if o.GetKind() == "Namespace" || o.GetKind() == "CustomResourceDefinition" {
		return errNotPlain
	}
	if !clusterScoped(&o) {
		o.SetNamespace(namespace)
	}
	return nil
}

func clusterScoped(o *unstructured.Unstructured) bool {
	namespaced, known := Scope(o.GroupVersionKind())
	return known && !namespaced
}

// Scope reports whether a kind is namespaced. known is false for kinds that are not built into
// Kubernetes.
func Scope(gvk schema.GroupVersionKind) (namespaced, known bool) {
	oneAtATime.RLock()
	defer oneAtATime.RUnlock()
	return openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind})
}

// distinct returns errNotPlain if kustomize would treat two objects as the same.
func distinct(objects []Object) error {
	seen := make(map[[4]string]bool, len(objects))
	for _, o := range objects {
		namespace := o.GetNamespace()
		if namespace == "" || clusterScoped(o.Unstructured) {
			namespace = "default"
		}
		key := [4]string{o.GetAPIVersion(), o.GetKind(), namespace, o.GetName()}
		if seen[key] {
			return errNotPlain
		}
		seen[key] = true
	}
	return nil
}

// plainObjects reads the objects of a file.
func plainObjects(text []byte) ([]Object, error) {
	// Annotations in these domains control kustomize.
	if bytes.Contains(text, []byte("config.kubernetes.io")) || bytes.Contains(text, []byte("config.k8s.io")) || oddlySeparated(text) {
		return nil, errNotPlain
	}
	var objects []Object
	for decoder := goyaml.NewDecoder(bytes.NewReader(text)); ; {
		var document goyaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil || document.Kind != goyaml.DocumentNode || len(document.Content) != 1 {
			return nil, errNotPlain
		}
		root := document.Content[0]
		if root.Kind == goyaml.ScalarNode && root.ShortTag() == "!!null" {
			continue // only comments
		}
		value, err := plainValue(root)
		if err != nil {
			return nil, err
		}
		object, ok := value.(map[string]any)
		if !ok || !simple(object) {
			return nil, errNotPlain
		}
		objects = append(objects, Object{Unstructured: &unstructured.Unstructured{Object: object}})
	}
}

// oddlySeparated reports whether a document ends with a separator other than three dashes, because
// kustomize has its own code to split documents.
func oddlySeparated(text []byte) bool {
	if bytes.ContainsRune(text, '\r') || bytes.HasPrefix(text, []byte("%")) || bytes.Contains(text, []byte("\n%")) || bytes.Contains(text, []byte("\n...")) {
		return true
	}
	for rest := text; ; {
		at := bytes.Index(rest, []byte("---"))
		if at < 0 {
			return false
		}
		begins := at == 0 && len(rest) == len(text) || at > 0 && rest[at-1] == '\n'
		rest = rest[at+3:]
		if begins && len(rest) > 0 && rest[0] != '\n' {
			return true
		}
	}
}

// linked lists the kinds in which kustomize updates references by namespace.
var linked = []string{"RoleBinding", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService"}

// simple reports whether an object is complete and not a list.
func simple(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if kind == "" || version == "" || name == "" || strings.HasSuffix(kind, "List") || slices.Contains(linked, kind) {
		return false
	}
	if namespace, set := metadata["namespace"]; set {
		if text, ok := namespace.(string); !ok || text == "" {
			return false
		}
	}
	return texts(metadata, "labels") && texts(metadata, "annotations")
}

// texts reports whether a field is missing or is a map of strings.
func texts(metadata map[string]any, field string) bool {
	value, set := metadata[field]
	if !set {
		return true
	}
	values, ok := value.(map[string]any)
	for _, v := range values {
		if _, isText := v.(string); !isText {
			return false
		}
	}
	return ok && len(values) > 0
}

// plainValue returns the JSON value of a YAML node.
func plainValue(node *goyaml.Node) (any, error) {
	switch node.Kind {
	case goyaml.MappingNode:
		return plainMap(node)
	case goyaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, item := range node.Content {
			value, err := plainValue(item)
			if err != nil || value == nil {
				return nil, errNotPlain // kustomize returns an error for empty items
			}
			list[i] = value
		}
		return list, nil
	case goyaml.ScalarNode:
		return plainScalar(node)
	}
	return nil, errNotPlain
}

func plainMap(node *goyaml.Node) (any, error) {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != goyaml.ScalarNode || key.ShortTag() != "!!str" {
			return nil, errNotPlain
		}
		if _, twice := object[key.Value]; twice {
			return nil, errNotPlain
		}
		value, err := plainValue(node.Content[i+1])
		if err != nil {
			return nil, err
		}
		object[key.Value] = value
	}
	return object, nil
}

func plainScalar(node *goyaml.Node) (any, error) {
	if node.Style&goyaml.TaggedStyle != 0 {
		return nil, errNotPlain
	}
	switch node.ShortTag() {
	case "!!str":
		return node.Value, nil
	case "!!null":
		if node.Value == "" {
			return nil, errNotPlain // kustomize returns null or an empty string, depending on the context
		}
		return nil, nil
	case "!!bool", "!!int", "!!float":
		var value any
		if err := node.Decode(&value); err != nil {
			return nil, errNotPlain
		}
		return plainNumber(value)
	}
	return nil, errNotPlain
}

// plainNumber returns whole numbers as integers, as decoding from JSON does.
func plainNumber(value any) (any, error) {
	if truth, ok := value.(bool); ok {
		return truth, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, errNotPlain
	}
	if whole, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return whole, nil
	}
	number, ok := value.(float64)
	if !ok {
		return nil, errNotPlain
	}
	return number, nil
}
