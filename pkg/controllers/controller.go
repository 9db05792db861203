package controllers

import "strings"

// Controller is a Flux controller.
type Controller struct {
	// Name is the name of the Deployment, of the ServiceAccount and of the
	// image.
	Name string
	// APIModule is the Go module that defines the kinds of the controller.
	APIModule string
	// Extra is set if only --components-extra installs the controller.
	Extra bool
}

// All lists the controllers in the order of installation.
var All = []Controller{
	{Name: "source-controller", APIModule: "github.com/fluxcd/source-controller/api"},
	{Name: "kustomize-controller", APIModule: "github.com/fluxcd/kustomize-controller/api"},
	{Name: "helm-controller", APIModule: "github.com/fluxcd/helm-controller/api"},
	{Name: "notification-controller", APIModule: "github.com/fluxcd/notification-controller/api"},
	{Name: "image-reflector-controller", APIModule: "github.com/fluxcd/image-reflector-controller/api", Extra: true},
	{Name: "image-automation-controller", APIModule: "github.com/fluxcd/image-automation-controller/api", Extra: true},
	{Name: "source-watcher", APIModule: "github.com/fluxcd/source-watcher/api/v2", Extra: true},
}

// Find returns the controller with the given name.
func Find(name string) (Controller, bool) {
	for _, c := range All {
		if c.Name == name {
			return c, true
		}
	}
	return Controller{}, false
}

// Names returns the names of the controllers for which keep returns true, in order.
func Names(keep func(Controller) bool) []string {
	var names []string
	for _, c := range All {
		if keep(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// Defaults returns the names of the controllers that are installed by default.
func Defaults() []string { return Names(func(c Controller) bool { return !c.Extra }) }

// Extras returns the names of the controllers that --components-extra adds.
func Extras() []string { return Names(func(c Controller) bool { return c.Extra }) }

// ImageTag returns the tag of an image, or its digest if it has no tag.
func ImageTag(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}
