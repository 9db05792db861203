package manifests

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
)

const (
	// bundleMax is the maximum size of an unpacked bundle.
	bundleMax = 32 << 20
	// bundleEntriesMax is the maximum number of files in a bundle.
	bundleEntriesMax = 100
	// bundleNamespace is the namespace of the subjects in a bundle.
	bundleNamespace = "flux-system"
)

// The files of a bundle besides those of the controllers.
const (
	rolesFile    = "rbac.yaml"
	policiesFile = "policies.yaml"
)

// FromBundle returns the manifests of a version of Flux that is not embedded, with
// the options applied. The archive is manifests.tar.gz of the release: a file for
// each controller, the roles and the NetworkPolicies.
func FromBundle(archive []byte, version string, o Options) (*Set, error) {
	o.Version = ""
	if err := o.Validate(); err != nil {
		return nil, err
	}
	files, err := unpack(archive)
	if err != nil {
		return nil, fmt.Errorf("unpacking the manifests of Flux %s: %w", version, err)
	}
	o.Components = distinct(o.Components)
	b := &bundle{version: version, files: files, options: o}
	set := &Set{Namespace: o.Namespace, Version: version, Components: o.Components}
	if set.objects, err = b.objects(); err != nil {
		return nil, fmt.Errorf("reading the manifests of Flux %s: %w", version, err)
	}
	return set, nil
}

// unpack returns the files in an archive by name.
func unpack(archive []byte) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: unzipped, N: bundleMax + 1}
	reader, files := tar.NewReader(limited), map[string][]byte{}
	for range bundleEntriesMax {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		var data []byte
		if err == nil && header.Typeflag == tar.TypeReg {
			data, err = io.ReadAll(reader)
		}
		if limited.N == 0 {
			return nil, fmt.Errorf("larger than %d MiB", bundleMax>>20)
		}
		if err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(header.Name, "./")] = data
	}
	return nil, fmt.Errorf("more than %d files", bundleEntriesMax)
}

// bundle is the release of a version of Flux.
type bundle struct {
	version string
	files   map[string][]byte
	options Options
}

// objects returns the objects in the order in which they are applied.
func (b *bundle) objects() ([]*unstructured.Unstructured, error) {
	cluster, err := expand("cluster.yaml", "${namespace}", b.options.Namespace)
	if err != nil {
		return nil, err
	}
	objects := cluster[:1] // the namespace
	label(objects[0], "", &Set{Namespace: b.options.Namespace, Version: b.version})
	if b.options.NetworkPolicy {
		policies, err := b.read(policiesFile)
		if err != nil {
			return nil, err
		}
		objects = append(objects, policies...)
	}
	roles, err := b.roles()
	if err != nil {
		return nil, err
	}
	objects = append(objects, roles...)
	for _, name := range b.options.Components {
		component, err := b.read(name + ".yaml")
		if err != nil {
			return nil, err
		}
		for _, object := range component {
			if object.GetKind() == "Deployment" {
				if err := b.configure(object); err != nil {
					return nil, err
				}
			}
		}
		objects = append(objects, component...)
	}
	return objects, nil
}

// read returns the objects of a file with the namespace and the labels of the
// installation.
func (b *bundle) read(name string) ([]*unstructured.Unstructured, error) {
	data, found := b.files[name]
	if !found {
		return nil, fmt.Errorf("the release has no %s", name)
	}
	objects, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, object := range objects {
		if !kube.ResourceFor(object.GroupVersionKind()).ClusterScoped {
			object.SetNamespace(b.options.Namespace)
		}
		object.SetLabels(b.labels(object.GetLabels()))
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), byName(a, b))
	})
	return objects, nil
}

// rank returns the position of an object's kind in the apply order.
func rank(o *unstructured.Unstructured) int {
	return slices.Index([]string{
		"NetworkPolicy", "ResourceQuota", "ClusterRole", "ClusterRoleBinding",
		"CustomResourceDefinition", "ServiceAccount", "Service", "Deployment",
	}, o.GetKind())
}

func (b *bundle) labels(labels map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels["app.kubernetes.io/instance"] = b.options.Namespace
	labels["app.kubernetes.io/part-of"] = "flux"
	labels["app.kubernetes.io/version"] = b.version
	return labels
}

// roles returns the RBAC objects. Their names end with the namespace, so that two
// installations on a cluster do not share them.
func (b *bundle) roles() ([]*unstructured.Unstructured, error) {
	objects, err := b.read(rolesFile)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	for _, object := range objects {
		object.SetName(object.GetName() + "-" + b.options.Namespace)
		if role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); slices.Contains(names, role) {
			_ = unstructured.SetNestedField(object.Object, role+"-"+b.options.Namespace, "roleRef", "name") // always a map
		}
		subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
		for _, subject := range subjects {
			if s, ok := subject.(map[string]any); ok && s["namespace"] == bundleNamespace {
				s["namespace"] = b.options.Namespace
			}
		}
		if subjects != nil {
			object.Object["subjects"] = subjects
		}
	}
	return objects, nil
}

// configure applies the options to a Deployment.
func (b *bundle) configure(d *unstructured.Unstructured) error {
	pod, _, err := unstructured.NestedMap(d.Object, "spec", "template", "spec")
	if err != nil {
		return err
	}
	containers, _ := pod["containers"].([]any)
	if len(containers) == 0 {
		return fmt.Errorf("deployment %s has no containers", d.GetName())
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return fmt.Errorf("deployment %s: the container is not an object", d.GetName())
	}
	image, _ := container["image"].(string)
	container["image"] = b.options.Registry + "/" + image[strings.LastIndexByte(image, '/')+1:]
	args, _ := container["args"].([]any)
	container["args"] = b.args(d.GetName(), args)
	selector, _ := pod["nodeSelector"].(map[string]any)
	if selector == nil {
		selector = map[string]any{}
	}
	selector["kubernetes.io/os"] = "linux"
	pod["nodeSelector"] = selector
	if b.options.ImagePullSecret != "" {
		pod["imagePullSecrets"] = []any{map[string]any{"name": b.options.ImagePullSecret}}
	}
	if len(b.options.TolerationKeys) > 0 {
		var tolerations []any
		for _, key := range b.options.TolerationKeys {
			tolerations = append(tolerations, map[string]any{"key": key, "operator": "Exists"})
		}
		pod["tolerations"] = tolerations
	}
	labels, _, _ := unstructured.NestedStringMap(d.Object, "spec", "template", "metadata", "labels")
	if err := unstructured.SetNestedStringMap(d.Object, b.labels(labels), "spec", "template", "metadata", "labels"); err != nil {
		return err
	}
	return unstructured.SetNestedMap(d.Object, pod, "spec", "template", "spec")
}

// args returns the arguments of a controller, in which options replace the existing
// arguments.
func (b *bundle) args(name string, released []any) []any {
	row := profile{Name: name}
	if i := slices.IndexFunc(profiles, func(p profile) bool { return p.Name == name }); i >= 0 {
		row = profiles[i]
	}
	args := slices.Clone(released)
	for _, wanted := range row.args(b.options) {
		flag, _, _ := strings.Cut(wanted, "=")
		i := slices.IndexFunc(args, func(arg any) bool { return arg == flag || strings.HasPrefix(fmt.Sprint(arg), flag+"=") })
		switch {
		case flag == "--feature-gates":
			args = append(args, wanted)
		case i >= 0:
			args[i] = wanted
		}
	}
	return args
}
