package manifests

// profile is what sets a controller's Deployment and Services apart from the
// others'. Everything that is the same for all stands in controller.yaml.
type profile struct {
	Name string

	// Artifacts says that the controller keeps artifacts and serves them. Only the
	// leader does and is ready, so a rollout that waits for the new pod before it
	// ends the old one would wait for ever: the pod is recreated instead.
	Artifacts bool
	// External says that the controller reads ExternalArtifacts if asked to.
	External bool
	// Silent says that the controller sends no events: it is who receives them.
	Silent bool
	// Critical says that nothing on the cluster changes while the pod is away.
	Critical bool
	// Sigstore says that the controller caches the keys that prove signatures.
	Sigstore bool

	Ports    []port
	Services []service
	Volumes  []volume

	CPU string
	// Grace is how many seconds the controller may take to finish its work:
	// a Helm release that is cut off in the middle stays locked.
	Grace int
}

type port struct {
	Name   string
	Number int
}

// service publishes a port of the controller within the cluster.
type service struct {
	Name, Port string
	// Plane is the value of the label control-plane.
	Plane string
}

type volume struct{ Name, Path string }

// profiles has a row for each controller.
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
