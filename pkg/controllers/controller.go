package controllers

// Distribution is the Flux version of the embedded controllers, without a
// leading "v". The command-line tool has its own version.
const Distribution = "2.9.5"

// MinKubernetes is the oldest Kubernetes version that the distribution
// supports, as a semver constraint. The pre-release suffix admits vendor builds
// such as 1.33.0-gke.1.
const MinKubernetes = ">=1.33.0-0"

// Controller is a Flux controller.
type Controller struct {
	// Name is the name of the Deployment, of the ServiceAccount and of the
	// image.
	Name string
	// Version is the image tag and the version of the API module.
	Version string
	// APIModule is the Go module that defines the kinds of the controller. A
	// test keeps its version in go.mod equal to Version.
	APIModule string
	// Extra marks a controller that only --components-extra installs.
	Extra bool
}

// All lists the controllers in the order of installation. Their versions are
// stated nowhere else.
var All = []Controller{
	{Name: "source-controller", Version: "v1.9.5", APIModule: "github.com/fluxcd/source-controller/api"},
	{Name: "kustomize-controller", Version: "v1.9.5", APIModule: "github.com/fluxcd/kustomize-controller/api"},
	{Name: "helm-controller", Version: "v1.6.4", APIModule: "github.com/fluxcd/helm-controller/api"},
	{Name: "notification-controller", Version: "v1.9.4", APIModule: "github.com/fluxcd/notification-controller/api"},
	{Name: "image-reflector-controller", Version: "v1.2.5", APIModule: "github.com/fluxcd/image-reflector-controller/api", Extra: true},
	{Name: "image-automation-controller", Version: "v1.2.5", APIModule: "github.com/fluxcd/image-automation-controller/api", Extra: true},
	{Name: "source-watcher", Version: "v2.2.4", APIModule: "github.com/fluxcd/source-watcher/api/v2", Extra: true},
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

// Names returns the names of the controllers for which keep is true, in order.
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
