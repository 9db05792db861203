// Package part holds what each process of a sandbox does once it runs: the
// programs of Kubernetes and etcd as libraries, started with the sandbox's own
// files and ports. One binary holds them all, so that there is one thing to
// build and to find.
package part

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxkit/flux/sandbox/internal/state"
)

// Names of the parts.
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

// runner is the body of a part. Those that are whole programs of Kubernetes
// install their own signal handlers; ctx ends on the same signals.
type runner func(ctx context.Context, folder state.Folder, config state.Config) error

func runners() map[string]runner {
	return map[string]runner{
		Etcd:              runEtcd,
		APIServer:         runAPIServer,
		ControllerManager: runControllerManager,
		Scheduler:         runScheduler,
		Kwok:              runKwok,
		Kubelet:           runKubelet,
		Git:               runGit,
		Registry:          runRegistry,
	}
}

// Run is the life of the part called name; it returns when the part ends.
func Run(ctx context.Context, name string, folder state.Folder) error {
	run, ok := runners()[name]
	if !ok {
		known := slices.Sorted(maps.Keys(runners()))
		return fmt.Errorf("unknown part %q: the parts are %s", name, strings.Join(known, ", "))
	}
	config, err := folder.LoadConfig()
	if err != nil {
		return err
	}
	return run(ctx, folder, config)
}

// OwnsSignals reports whether a part's program handles signals by itself.
func OwnsSignals(name string) bool {
	return name == APIServer || name == ControllerManager || name == Scheduler
}
