package operator

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The annotations of resources that the operator evaluates.
const (
	reconcileAnnotation = controllers.OperatorGroup + "/reconcile"
	convertAnnotation   = controllers.OperatorGroup + "/convertKubeConfigFrom"
	sumFromAnnotation   = controllers.OperatorGroup + "/checksumFrom"
	sumAnnotation       = controllers.OperatorGroup + "/checksum"
)

// objects returns the objects in the texts of the templates, each object once.
func (r *rendering) objects(templates []build.Template, texts [][]string) (*build.Result, error) {
	all := &build.Result{}
	seen := map[controllers.VersionedID]string{} // the step
	for i, template := range templates {
		step, _, _ := strings.Cut(template.Name, ".resources")
		for _, text := range texts[i] {
			found, err := manifests(text)
			if err != nil {
				return nil, fmt.Errorf("reading the result of %s: %w", template.Name, err)
			}
			for _, o := range found {
				if o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName() == "" {
					return nil, fmt.Errorf("%s contains an object without apiVersion, kind or name: %s", template.Name, controllers.IDOf(o.Object))
				}
				id := controllers.VersionedIDOf(o.Object)
				if controllers.HasSetting(o.Object, reconcileAnnotation, "disabled") {
					all.Excluded = append(all.Excluded, id)
					continue
				}
				if other := seen[id]; other != "" && other != step {
					return nil, fmt.Errorf("%s and %s both contain %s", other, step, id)
				}
				if seen[id] == "" {
					all.Objects = append(all.Objects, build.Object{Unstructured: o, Owner: controllers.IDOf(r.owner.Object)})
				}
				seen[id] = step
			}
		}
	}
	return all, nil
}

// manifests returns the objects in a text, including the items of lists.
func manifests(text string) ([]*unstructured.Unstructured, error) {
	found, err := sourcetree.ReadManifests(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, o := range found {
		if !o.IsList() {
			all = append(all, o)
			continue
		}
		list, err := o.ToList()
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}

// finish fills the objects with data of others and adds their metadata.
func (r *rendering) finish(objects []build.Object, s *spec) error {
	for i := range objects {
		if err := r.fill(&objects[i]); err != nil {
			return fmt.Errorf("%s: %w", controllers.IDOf(objects[i].Unstructured.Object), err)
		}
	}
	own := (&build.Result{Objects: objects}).Lookup(build.DataOf)
	for _, o := range objects {
		if err := r.sum(o.Object, own); err != nil {
			return fmt.Errorf("%s: %w", controllers.IDOf(o.Unstructured.Object), err)
		}
		r.label(o.Unstructured, s.CommonMetadata.Labels, s.CommonMetadata.Annotations)
	}
	return nil
}

// fill fills an object with the data that its annotations refer to.
func (r *rendering) fill(o *build.Object) error {
	annotations := o.GetAnnotations()
	if from := annotations[controllers.CopyAnnotation]; from != "" {
		if err := r.copyData(o, from); err != nil {
			return err
		}
	}
	if from := annotations[convertAnnotation]; from != "" {
		return r.convert(o, from)
	}
	return nil
}

// copyData copies the data of a ConfigMap or Secret into an object of the same kind.
func (r *rendering) copyData(o *build.Object, from string) error {
	source, err := named(o.GetKind(), from)
	if err != nil {
		return err
	}
	data, err := r.read(source)
	if o.Partial = data == nil; o.Partial || err != nil {
		return err
	}
	texts, binaries := map[string]any{}, map[string]any{}
	for key, value := range data {
		if source.IsSecret() || !utf8.Valid(value) {
			binaries[key] = base64.StdEncoding.EncodeToString(value)
		} else {
			texts[key] = string(value)
		}
	}
	if o.Object["data"] = texts; source.IsSecret() {
		o.Object["data"] = binaries
	} else if len(binaries) > 0 {
		o.Object["binaryData"] = binaries
	}
	if original, err := r.options.Find(r.ctx, source); err == nil && original.Object["type"] != nil {
		o.Object["type"] = original.Object["type"]
	}
	return nil
}

// convert adds the address and the CA certificate in a kubeconfig to a ConfigMap.
func (r *rendering) convert(o *build.Object, from string) error {
	from, key, _ := strings.Cut(from, ":")
	source, err := named(controllers.Secret, from)
	if err != nil {
		return err
	}
	data, err := r.read(source)
	if o.Partial = data == nil; o.Partial || err != nil {
		return err
	}
	keys := []string{key}
	if key == "" {
		keys = []string{"kubeconfig", "value"}
	}
	at := slices.IndexFunc(keys, func(key string) bool { return data[key] != nil })
	if at < 0 {
		return fmt.Errorf("%s has no key %s", source, strings.Join(keys, " or "))
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	if err := yaml.Unmarshal(data[keys[at]], &config); err != nil || len(config.Clusters) == 0 {
		return fmt.Errorf("the kubeconfig in %s has no cluster", source)
	}
	cluster := config.Clusters[0].Cluster
	if cluster.Server == "" || len(cluster.CA) == 0 {
		return fmt.Errorf("the kubeconfig in %s has no server or certificate-authority-data", source)
	}
	found := map[string]any{"address": cluster.Server, "ca.crt": string(cluster.CA)}
	present, _, _ := unstructured.NestedMap(o.Object, "data")
	o.Object["data"] = build.Merged(found, present)
	return nil
}

// sum sets the checksum of ConfigMaps and Secrets next to each annotation that requests one, anywhere in an object.
// The operator computes a different checksum, but both change with the same data.
func (r *rendering) sum(value any, own build.Lookup) error {
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			if err := r.sum(inner, own); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if err := r.sum(value[key], own); err != nil {
				return err
			}
		}
		metadata, _ := value["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		from, _ := annotations[sumFromAnnotation].(string)
		if from == "" {
			return nil
		}
		sum, err := r.sumOf(from, own)
		if err == nil && sum != "" {
			annotations[sumAnnotation] = sum
		}
		return err
	}
	return nil
}

// sumOf returns the checksum of a list of ConfigMaps and Secrets. Objects of the ResourceSet take precedence. It is
// "" if an object is rendered without its data.
func (r *rendering) sumOf(list string, own build.Lookup) (string, error) {
	hash := sha256.New()
	for reference := range strings.SplitSeq(list, ",") {
		kind, from, _ := strings.Cut(strings.TrimSpace(reference), "/")
		source, err := named(kind, from)
		if err != nil {
			return "", err
		}
		data, err := own.Data(r.ctx, source)
		if errors.Is(err, build.ErrNotFound) {
			data, err = r.read(source)
		}
		if err != nil || data == nil {
			return "", err
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			_, _ = fmt.Fprintf(hash, "%s %q %q\n", source, key, data[key])
		}
	}
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), nil
}

// named returns the ConfigMap or Secret NAMESPACE/NAME.
func named(kind, reference string) (controllers.ID, error) {
	namespace, name, ok := strings.Cut(reference, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return controllers.ID{}, fmt.Errorf("%q does not have the form NAMESPACE/NAME", reference)
	}
	if kind != controllers.ConfigMap && kind != controllers.Secret {
		return controllers.ID{}, errors.New("only ConfigMaps and Secrets are supported")
	}
	return controllers.ID{Kind: kind, Namespace: namespace, Name: name}, nil
}

// read returns the data of a ConfigMap or Secret. It returns nil if the object is rendered without it.
func (r *rendering) read(object controllers.ID) (map[string][]byte, error) {
	err := build.ErrNotFound
	var data map[string][]byte
	if r.options.Lookup != nil {
		data, err = r.options.Lookup.Data(r.ctx, object)
	}
	if err != nil && r.options.Missing != nil && r.options.Missing(object, err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", object, err)
	}
	return data, nil
}
