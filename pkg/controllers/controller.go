package controllers

// Distribution is the version of Flux whose controllers this binary ships,
// without a leading "v". It is apart from the version of the command-line tool.
const Distribution = "2.9.5"

// MinKubernetes is the oldest Kubernetes that the distribution supports, as a
// semver constraint; the pre-release suffix admits vendors' builds (1.33.0-gke.1).
const MinKubernetes = ">=1.33.0-0"

// Controller is one of the programs that make up Flux.
type Controller struct {
	// Name is the name of the Deployment, the ServiceAccount and the image.
	Name string
	// Version is the tag of the image and the version of the API module.
	Version string
	// APIModule is the Go module that defines the controller's kinds; its
	// version in go.mod equals Version, which a test keeps so.
	APIModule string
	// Extra says that the controller is installed only when asked for with
	// --components-extra.
	Extra bool
}

// All lists the seven controllers in the order in which they are installed.
// It is the one place that names their versions.
var All = []Controller{
	{Name: "source-controller", Version: "v1.9.5", APIModule: "github.com/fluxcd/source-controller/api"},
	{Name: "kustomize-controller", Version: "v1.9.5", APIModule: "github.com/fluxcd/kustomize-controller/api"},
	{Name: "helm-controller", Version: "v1.6.4", APIModule: "github.com/fluxcd/helm-controller/api"},
	{Name: "notification-controller", Version: "v1.9.4", APIModule: "github.com/fluxcd/notification-controller/api"},
	{Name: "image-reflector-controller", Version: "v1.2.5", APIModule: "github.com/fluxcd/image-reflector-controller/api", Extra: true},
	{Name: "image-automation-controller", Version: "v1.2.5", APIModule: "github.com/fluxcd/image-automation-controller/api", Extra: true},
	{Name: "source-watcher", Version: "v2.2.4", APIModule: "github.com/fluxcd/source-watcher/api/v2", Extra: true},
}

// Find returns the controller of that name.
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

// Defaults returns the names of the controllers that are installed unless told otherwise.
func Defaults() []string { return Names(func(c Controller) bool { return !c.Extra }) }

// Extras returns the names of the controllers that --components-extra adds.
func Extras() []string { return Names(func(c Controller) bool { return c.Extra }) }
