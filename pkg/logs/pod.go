package logs

import (
	"path"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Pod is the pod of a controller.
type Pod struct {
	Namespace, Name, Container string
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
	field := func(p string) string { return controllers.Path{p}.String(o) }
	containers, _ := controllers.Path{"spec.containers"}.Lookup(o)
	container, ours := manager(containers)
	if !ours && kube.Label(o, kube.PartOfLabel) != "flux" || container == "" {
		return Pod{}, false
	}
	p := Pod{Namespace: field("metadata.namespace"), Name: field("metadata.name"), Container: container}
	p.run.uid = field("metadata.uid")
	statuses, _ := controllers.Path{"status.containerStatuses"}.Lookup(o)
	items, _ := statuses.([]any)
	for _, item := range items {
		status, _ := item.(map[string]any)
		if status["name"] == container {
			p.read(status)
		}
	}
	return p, true
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
