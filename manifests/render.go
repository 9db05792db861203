package manifests

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/pkg/controllers"
)

//go:embed cluster.yaml controller.yaml
var files embed.FS

// Render returns the objects of an installation in the order in which they are applied. The output depends only on the
// options. It returns ErrNoCRDs in a binary that was built without the CRDs.
func Render(o Options) (*Set, error) { return render(o, crdFiles) }

func render(o Options, crds fs.FS) (*Set, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	distribution, _ := controllers.FindDistribution(o.Version)
	o.Components = distinct(o.Components)
	set := &Set{Namespace: o.Namespace, Version: "v" + distribution.Version, Components: o.Components}
	var err error
	if set.objects, err = cluster(o, distribution); err != nil {
		return nil, err
	}
	for _, object := range set.objects {
		label(object, "", set)
	}
	for _, name := range o.Components {
		objects, err := definitions(crds, distribution.Version, name)
		if err != nil {
			return nil, err
		}
		row := profiles[slices.IndexFunc(profiles, func(p profile) bool { return p.Name == name })]
		workload, err := row.workload(o, distribution)
		if err != nil {
			return nil, err
		}
		objects = append(objects, workload...)
		for _, object := range objects {
			label(object, name, set)
		}
		set.objects = append(set.objects, objects...)
	}
	return set, nil
}

// cluster returns the objects that exist once.
func cluster(o Options, d controllers.Distribution) ([]*unstructured.Unstructured, error) {
	objects, err := expand("cluster.yaml", "${namespace}", o.Namespace)
	if err != nil {
		return nil, err
	}
	var kept []*unstructured.Unstructured
	for _, object := range objects {
		spec, _ := object.Object["spec"].(map[string]any)
		switch name := object.GetName(); {
		case object.GetKind() == "NetworkPolicy" && !o.NetworkPolicy:
			continue
		case name == "allow-webhooks" && d.OpenWebhooks:
			ingress, _ := spec["ingress"].([]any)
			delete(ingress[0].(map[string]any), "ports")
		case name == "crd-controller-"+o.Namespace && object.GetKind() == "ClusterRole" && !d.TokenRequests:
			rules, _ := object.Object["rules"].([]any)
			object.Object["rules"] = slices.DeleteFunc(rules, func(rule any) bool {
				resources, _ := rule.(map[string]any)["resources"].([]any)
				return slices.Contains(resources, any("serviceaccounts/token"))
			})
		}
		kept = append(kept, object)
	}
	return kept, nil
}

// workload returns the ServiceAccount, the Services and the Deployment of the controller.
func (p profile) workload(o Options, d controllers.Distribution) ([]*unstructured.Unstructured, error) {
	objects, err := expand("controller.yaml", "${namespace}", o.Namespace, "${name}", p.Name,
		"${image}", o.Registry+"/"+p.Name+":"+d.Tags[p.Name], "${grace}", strconv.Itoa(p.Grace), "${cpu}", p.CPU)
	if err != nil {
		return nil, err
	}
	deployment := objects[len(objects)-1]
	p.complete(deployment.Object, o, d)
	objects = objects[:len(objects)-1]
	for _, s := range p.Services {
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": s.Name, "namespace": o.Namespace, "labels": map[string]any{"control-plane": s.Plane}},
			"spec": map[string]any{
				"type": "ClusterIP", "selector": map[string]any{"app": p.Name},
				"ports": []any{map[string]any{"name": "http", "port": int64(80), "protocol": "TCP", "targetPort": s.Port}},
			},
		}})
	}
	return append(objects, deployment), nil
}

// complete adds the settings in which Deployments differ.
func (p profile) complete(deployment map[string]any, o Options, d controllers.Distribution) {
	spec, _ := deployment["spec"].(map[string]any)
	if p.Artifacts {
		spec["strategy"] = map[string]any{"type": "Recreate"}
	}
	template, _ := spec["template"].(map[string]any)
	pod, _ := template["spec"].(map[string]any)
	if p.Critical {
		pod["priorityClassName"] = "system-cluster-critical"
	}
	if o.ImagePullSecret != "" {
		pod["imagePullSecrets"] = []any{map[string]any{"name": o.ImagePullSecret}}
	}
	var tolerations []any
	for _, key := range o.TolerationKeys {
		tolerations = append(tolerations, map[string]any{"key": key, "operator": "Exists"})
	}
	if tolerations != nil {
		pod["tolerations"] = tolerations
	}
	containers, _ := pod["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	// Users patch arguments by index, so the position of an argument must not depend on options.
	var args []any
	for _, arg := range p.args(o) {
		args = append(args, arg)
	}
	container["args"] = args
	if p.Sigstore {
		env, _ := container["env"].([]any)
		container["env"] = slices.Insert(env, 1, any(map[string]any{"name": "TUF_ROOT", "value": "/tmp/.sigstore"}))
	}
	ports, _ := container["ports"].([]any)
	for i, port := range p.Ports {
		ports = slices.Insert(ports, i, any(map[string]any{"name": port.Name, "containerPort": int64(port.Number), "protocol": "TCP"}))
	}
	container["ports"] = ports
	if p.Artifacts && !slices.Contains(d.Probed, p.Name) {
		// Only the leader serves artifacts and listens on the file server's port.
		container["readinessProbe"] = map[string]any{"httpGet": map[string]any{"path": "/", "port": "http"}}
	}
	var mounts, volumes []any
	for _, v := range p.Volumes {
		mounts = append(mounts, map[string]any{"name": v.Name, "mountPath": v.Path})
		volumes = append(volumes, map[string]any{"name": v.Name, "emptyDir": map[string]any{}})
	}
	container["volumeMounts"], pod["volumes"] = mounts, volumes
}

// args returns the arguments of the controller. Without notification-controller,
// --events-addr is empty but present, so that patches by index stay valid.
func (p profile) args(o Options) []string {
	host := func(service string) string { return service + ".$(RUNTIME_NAMESPACE).svc." + o.ClusterDomain + "." }
	var args []string
	if !p.Silent {
		events := ""
		if slices.Contains(o.Components, "notification-controller") {
			events = "http://" + host("notification-controller") + "/"
		}
		args = append(args, "--events-addr="+events)
	}
	args = append(args,
		fmt.Sprintf("--watch-all-namespaces=%t", o.WatchAllNamespaces),
		"--log-level="+o.LogLevel,
		"--log-encoding=json",
		"--enable-leader-election")
	if p.Artifacts {
		args = append(args, "--storage-path=/data", "--storage-adv-addr="+host(p.Name))
	}
	if p.External && slices.Contains(o.Components, "source-watcher") {
		args = append(args, "--feature-gates=ExternalArtifact=true")
	}
	return args
}

// expand returns the objects of a file in which variables are replaced. Valid options contain no special characters of YAML.
func expand(name string, variables ...string) ([]*unstructured.Unstructured, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	objects, err := decode([]byte(strings.NewReplacer(variables...).Replace(string(text))))
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return objects, nil
}

// label adds the labels of the installation to an object and its pods. `check` and `uninstall` use them to find the objects.
func label(object *unstructured.Unstructured, component string, set *Set) {
	labels := map[string]string{
		"app.kubernetes.io/instance": set.Namespace,
		"app.kubernetes.io/part-of":  "flux",
		"app.kubernetes.io/version":  set.Version,
	}
	if component != "" {
		labels["app.kubernetes.io/component"] = component
	}
	pods, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	if pods != nil {
		maps.Copy(pods, labels)
		_ = unstructured.SetNestedStringMap(object.Object, pods, "spec", "template", "metadata", "labels") // the path exists
	}
	if object.GetKind() != "CustomResourceDefinition" {
		maps.Copy(labels, object.GetLabels())
	}
	object.SetLabels(labels)
}

func distinct(names []string) []string {
	var once []string
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

func byName(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) }
