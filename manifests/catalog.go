package manifests

// profile contains the properties in which the Deployments and Services of the
// controllers differ. controller.yaml contains the common part.
type profile struct {
	Name string

	// Artifacts is true for a controller that stores and serves artifacts. Only the
	// leader becomes ready, so a rolling update would never complete: the Deployment uses
	// the strategy Recreate.
	Artifacts bool
	// External is true for a controller that can read ExternalArtifacts.
	External bool
	// Silent is true for the controller that receives the events of other controllers.
	Silent bool
	// Critical is true for a controller without which no changes are applied.
	Critical bool
	// Sigstore is true for a controller that caches the keys of Sigstore.
	Sigstore bool

	Ports    []port
	Services []service
	Volumes  []volume

	CPU string
	// Grace is the termination grace period in seconds. An interrupted Helm
	// action leaves the release locked.
	Grace int
}

type port struct {
	Name   string
	Number int
}

// service is a Service of the controller.
type service struct {
	Name, Port string
	// Plane is the value of the label control-plane.
	Plane string
}

type volume struct{ Name, Path string }

// profiles contains a row for each controller.
var profiles = []profile{
	{
		Name: "source-controller", Artifacts: true, Critical: true, Sigstore: true,
		Ports:    []port{{"http", 9090}},
		Services: []service{{"source-controller", "http", "controller"}},
		Volumes:  []volume{{"data", "/data"}, {"tmp", "/tmp"}},
		CPU:      "50m", Grace: 10,
	},
	{
		Name: "kustomize-controller", External: true, Critical: true,
		Volumes: []volume{{"temp", "/tmp"}},
		CPU:     "100m", Grace: 60,
	},
	{
		Name: "helm-controller", External: true, Critical: true,
		Volumes: []volume{{"temp", "/tmp"}},
		CPU:     "100m", Grace: 600,
	},
	{
		Name: "notification-controller", Silent: true,
		Ports: []port{{"http", 9090}, {"http-webhook", 9292}},
		Services: []service{
			{"notification-controller", "http", "controller"},
			{"webhook-receiver", "http-webhook", "controller"},
		},
		Volumes: []volume{{"temp", "/tmp"}},
		CPU:     "100m", Grace: 10,
	},
	{
		Name:    "image-reflector-controller",
		Volumes: []volume{{"temp", "/tmp"}, {"data", "/data"}},
		CPU:     "100m", Grace: 10,
	},
	{
		Name:    "image-automation-controller",
		Volumes: []volume{{"temp", "/tmp"}},
		CPU:     "100m", Grace: 10,
	},
	{
		Name: "source-watcher", Artifacts: true, Critical: true,
		Ports:    []port{{"http", 9090}},
		Services: []service{{"source-watcher", "http", "source-watcher"}},
		Volumes:  []volume{{"data", "/data"}, {"tmp", "/tmp"}},
		CPU:      "50m", Grace: 10,
	},
}
