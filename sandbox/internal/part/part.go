// Package part runs the components of a sandbox: the programs of Kubernetes and etcd as
// libraries, started with the files and ports of the sandbox. One binary contains all of
// them, so that only one program has to be built and installed.
package part

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/sandbox/internal/kubelet"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// Names of the components.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	Kubelet           = "kubelet"
	Git               = "git"
	Registry          = "registry"
)

// runner runs a component. The programs of Kubernetes install their own signal
// handlers; ctx is canceled by the same signals.
type runner func(ctx context.Context, folder state.Folder, config state.Config) error

func runners() map[string]runner {
	return map[string]runner{
		Etcd:              runEtcd,
		APIServer:         runAPIServer,
		ControllerManager: runControllerManager,
		Scheduler:         runScheduler,
		Kwok:              runKwok,
		Kubelet:           kubelet.Run,
		Git:               runGit,
		Registry:          runRegistry,
	}
}

// Run runs the named component and returns when it exits.
func Run(ctx context.Context, name string, folder state.Folder) error {
	run, ok := runners()[name]
	if !ok {
		known := slices.Sorted(maps.Keys(runners()))
		return fmt.Errorf("unknown component %q: must be one of %s", name, strings.Join(known, ", "))
	}
	config, err := folder.LoadConfig()
	if err != nil {
		return err
	}
	return run(ctx, folder, config)
}

// OwnsSignals reports whether the component handles signals itself.
func OwnsSignals(name string) bool {
	return name == APIServer || name == ControllerManager || name == Scheduler
}
