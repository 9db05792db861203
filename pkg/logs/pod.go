package logs

import (
	"path"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Pod is a container of a pod.
type Pod struct {
	Namespace, Name, Container string
	// Label identifies the container in lines: the name of the pod, with the name of the container if the pod has several.
	Label string
	// Application is set if lines are shown unchanged, because a controller did not write them.
	Application bool
	// Started reports whether the container is running or has run. Waiting is the reason why it has not started.
	Started bool
	Waiting string

	run run
}

// run is one run of a container. A restart, or a new pod with the same name, begins another run.
type run struct {
	uid      string
	restarts int64
	// running reports whether the container is running.
	running bool
}

// Of returns the pod of a controller, or false for other pods.
func Of(o controllers.Object) (Pod, bool) {
	containers, _ := controllers.Path{"spec.containers"}.Lookup(o)
	container, ours := manager(containers)
	if !ours && kube.Label(o, kube.PartOfLabel) != "flux" || container == "" {
		return Pod{}, false
	}
	return podOf(o, container), true
}

// podOf returns a container of a pod.
func podOf(o controllers.Object, container string) Pod {
	field := func(p string) string { return controllers.Path{p}.String(o) }
	p := Pod{Namespace: field("metadata.namespace"), Name: field("metadata.name"), Container: container, Label: field("metadata.name")}
	p.run.uid = field("metadata.uid")
	statuses, _ := controllers.Path{"status.containerStatuses"}.Lookup(o)
	items, _ := statuses.([]any)
	for _, item := range items {
		status, _ := item.(map[string]any)
		if status["name"] == container {
			p.read(status)
		}
	}
	return p
}

// Containers returns the containers of a pod of an application, without init containers.
func Containers(o controllers.Object) []Pod {
	containers, _ := controllers.Path{"spec.containers"}.Lookup(o)
	items, _ := containers.([]any)
	var all []Pod
	for _, item := range items {
		c, _ := item.(map[string]any)
		name, _ := c["name"].(string)
		p := podOf(o, name)
		p.Application = true
		if len(items) > 1 {
			p.Label += "/" + name
		}
		all = append(all, p)
	}
	return all
}

// Workload returns the object that creates a pod, or the pod itself. It is the Deployment for a pod of its ReplicaSets, so that
// pods are found after a rollout.
func Workload(o controllers.Object) controllers.ID {
	id := controllers.IDOf(o)
	owners, _ := controllers.Path{"metadata.ownerReferences"}.Lookup(o)
	items, _ := owners.([]any)
	for _, item := range items {
		owner, _ := item.(map[string]any)
		if owner["controller"] != true {
			continue
		}
		field := func(p string) string { return controllers.Path{p}.String(owner) }
		group, _, _ := strings.Cut(field("apiVersion"), "/")
		id = controllers.ID{Group: group, Kind: field("kind"), Namespace: id.Namespace, Name: field("name")}
		if base, of := strings.CutSuffix(id.Name, "-"+kube.Label(o, "pod-template-hash")); of && id.Kind == "ReplicaSet" {
			id.Kind, id.Name = "Deployment", base
		}
	}
	return id
}

// manager returns the controller's container, and whether its image is a Flux image.
func manager(containers any) (string, bool) {
	first := ""
	items, _ := containers.([]any)
	for _, item := range items {
		c, _ := item.(map[string]any)
		name, _ := c["name"].(string)
		image, _ := c["image"].(string)
		if _, known := controllers.Find(imageName(image)); known || imageName(image) == controllers.OperatorName {
			return name, true
		}
		if first == "" || name == "manager" {
			first = name
		}
	}
	return first, false
}

// imageName returns the last element of the name of an image, without tag and digest.
func imageName(image string) string {
	name, _, _ := strings.Cut(path.Base(image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

func (p *Pod) read(status map[string]any) {
	p.run.restarts, _ = status["restartCount"].(int64)
	state, _ := status["state"].(map[string]any)
	last, _ := status["lastState"].(map[string]any)
	_, running := state["running"].(map[string]any)
	_, ended := state["terminated"].(map[string]any)
	_, before := last["terminated"].(map[string]any)
	p.run.running = running
	p.Started = running || ended || before
	p.Waiting = controllers.Path{"waiting.reason"}.String(state)
}
