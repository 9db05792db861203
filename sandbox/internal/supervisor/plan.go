package supervisor

import (
	"time"

	"github.com/fluxkit/flux/sandbox/internal/part"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// spec describes how a component is started, probed and stopped.
type spec struct {
	name  string
	ports map[string]string // purpose of a port -> its name in the configuration
	ready check
	env   []string
	grace time.Duration
}

// stages returns the start order: the components of a stage start together when the previous stage is ready.
// They stop in reverse order, so that clients of the API server stop before it, and etcd after it.
func (n *network) stages(folder state.Folder, config state.Config) [][]spec {
	kwokHome := "KWOK_WORKDIR=" + folder.Path("kwok")
	return [][]spec{
		{
			{name: part.Etcd, ports: ports("client", "etcd", "peer", "etcd-peer"), grace: 10 * time.Second,
				ready: n.https(folder, config.Addr("etcd"), "/health", "apiserver-etcd")},
			{name: part.Git, ports: ports("http", "git-http", "https", "git-https", "ssh", "git-ssh"), grace: 5 * time.Second,
				ready: gitListens(folder)},
			{name: part.Registry, ports: ports("http", "registry"), grace: 5 * time.Second,
				ready: n.http(config.Addr("registry"), "/v2/")},
		},
		{
			// Requests are short-lived garbage: less frequent collection saves CPU time and costs some memory.
			{name: part.APIServer, ports: ports("https", "apiserver"), grace: 15 * time.Second,
				env:   []string{"GOGC=200"},
				ready: n.https(folder, config.Addr("apiserver"), "/readyz", "")},
		},
		{
			{name: part.ControllerManager, ports: ports("https", "controller-manager"), grace: 10 * time.Second,
				env:   []string{"GOGC=100"},
				ready: n.https(folder, config.Addr("controller-manager"), "/healthz", "")},
			{name: part.Scheduler, ports: ports("https", "scheduler"), grace: 10 * time.Second,
				env:   []string{"GOGC=100"},
				ready: n.https(folder, config.Addr("scheduler"), "/healthz", "")},
			{name: part.Kwok, ports: ports("http", "kwok"), grace: 5 * time.Second,
				env: []string{kwokHome, "GOGC=100"}, ready: n.http(config.Addr("kwok"), "/healthz")},
			// This is longer than the grace period of the controllers, which it stops first.
			{name: part.Kubelet, ports: ports("https", "kubelet"), grace: 20 * time.Second,
				ready: n.https(folder, config.Addr("kubelet"), "/healthz", "apiserver-kubelet")},
		},
	}
}

func ports(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}
