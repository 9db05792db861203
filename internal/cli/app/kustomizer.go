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
	"github.com/fluxkit/flux/pkg/build/isolated"
)

// Kustomizers holds the processes that run kustomize for a command, one for each
// list of allowed hosts. A process is started by its first build.
type Kustomizers struct {
	mu       sync.Mutex
	programs map[string]*isolated.Kustomizer
}

// Close stops the processes.
func (k *Kustomizers) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var err error
	for _, program := range k.programs {
		err = errors.Join(err, program.Close())
	}
	return err
}

// RemoteBases holds the hosts of --allow-remote-bases.
type RemoteBases struct{ hosts []string }

// Add adds the flag --allow-remote-bases to fs.
func (r *RemoteBases) Add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&r.hosts, "allow-remote-bases", nil, "hosts that kustomizations may refer to over HTTP, e.g. github.com (default none)")
}

// Kustomizer returns the process that runs kustomize with the allowed hosts. Run
// closes it when the command ends.
func (a *App) Kustomizer(r RemoteBases) (build.Kustomizer, error) {
	hosts := egress.Hosts(r.hosts)
	if err := hosts.Check(); err != nil {
		return nil, fmt.Errorf("invalid value of --allow-remote-bases: %w", err)
	}
	key, k := strings.Join(hosts, ","), a.Kustomizers
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.programs == nil {
		k.programs = map[string]*isolated.Kustomizer{}
	}
	if k.programs[key] == nil {
		k.programs[key] = isolated.NewKustomizer(FindHelper, &isolated.Bases{Hosts: hosts, Env: a.Env}, a.Err)
	}
	return k.programs[key], nil
}

// FindHelper returns the path of the helper program.
func FindHelper() (string, error) {
	path, err := helper.Find(helper.Program)
	if errors.Is(err, helper.ErrNotFound) {
		err = clierr.WithHint("install "+helper.Program+" from the archive of flux in the folder of flux", "%w", err)
	}
	return path, err
}
