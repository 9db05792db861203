package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/egress"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/helmprocess"
)

// kustomizers are the processes that run kustomize for a command, by the hosts
// that they may ask. Each is started when it is needed.
type kustomizers struct {
	mu       sync.Mutex
	programs map[string]*helmprocess.Program
}

func (k *kustomizers) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	for _, program := range k.programs {
		err = errors.Join(err, program.Close())
	}
	return err
}

// remoteBases are the hosts that kustomizations may refer to.
type remoteBases struct{ hosts []string }

func (r *remoteBases) add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&r.hosts, "allow-remote-bases", nil, "hosts that kustomizations may refer to over HTTP, e.g. github.com (default none)")
}

// kustomizer runs kustomize for a build. It is closed when the command ends.
func (a *app) kustomizer(r remoteBases) (build.Kustomizer, error) {
	hosts := egress.Hosts(r.hosts)
	if err := hosts.Check(); err != nil {
		return nil, fmt.Errorf("invalid value of --allow-remote-bases: %w", err)
	}
	key, k := strings.Join(hosts, ","), a.kustomizers
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.programs == nil {
		k.programs = map[string]*helmprocess.Program{}
	}
	if k.programs[key] == nil {
		k.programs[key] = &helmprocess.Program{Find: findHelper, Stderr: a.err, Bases: &helmprocess.Bases{Hosts: hosts, Env: a.env}}
	}
	return k.programs[key], nil
}

// findHelper returns the path of the program that runs Helm and kustomize.
func findHelper() (string, error) {
	path, err := findBeside(helmProgram)
	if err != nil {
		err = hinted("it comes with flux: put it beside it, or on PATH", "%s, which runs Helm and kustomize, lies neither beside flux nor on PATH", helmProgram)
	}
	return path, err
}
