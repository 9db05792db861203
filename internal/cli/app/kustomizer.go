package app

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/egress"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/helmprocess"
)

// Kustomizers are the processes that run kustomize for a command, by the hosts
// that they may ask. Each is started when it is needed.
type Kustomizers struct {
	mu       sync.Mutex
	programs map[string]*helmprocess.Program
}

// Close ends all processes and returns their errors.
func (k *Kustomizers) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	for _, program := range k.programs {
		err = errors.Join(err, program.Close())
	}
	return err
}

// RemoteBases are the hosts that kustomizations may refer to.
type RemoteBases struct{ hosts []string }

// Add adds the flag --allow-remote-bases.
func (r *RemoteBases) Add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&r.hosts, "allow-remote-bases", nil, "hosts that kustomizations may refer to over HTTP, e.g. github.com (default none)")
}

// Kustomizer runs kustomize for a build. It is closed when the command ends.
func (a *App) Kustomizer(r RemoteBases) (build.Kustomizer, error) {
	hosts := egress.Hosts(r.hosts)
	if err := hosts.Check(); err != nil {
		return nil, fmt.Errorf("invalid value of --allow-remote-bases: %w", err)
	}
	key, k := strings.Join(hosts, ","), a.Kustomizers
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.programs == nil {
		k.programs = map[string]*helmprocess.Program{}
	}
	if k.programs[key] == nil {
		k.programs[key] = &helmprocess.Program{Find: FindHelper, Stderr: a.Err, Bases: &helmprocess.Bases{Hosts: hosts, Env: a.Env}}
	}
	return k.programs[key], nil
}

// FindHelper returns the path of the program that runs Helm and kustomize.
func FindHelper() (string, error) {
	path, err := helper.Find(helper.Helm)
	if err != nil {
		err = clierr.WithHint("it comes with flux: put it beside it, or on PATH", "%s, which runs Helm and kustomize, lies neither beside flux nor on PATH", helper.Helm)
	}
	return path, err
}
