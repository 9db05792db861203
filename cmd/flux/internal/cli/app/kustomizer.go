package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/release/sigstore"
	"github.com/fluxkit/flux/internal/sandbox/sandboxrelease"
	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/internal/terminal/ui"
	"github.com/fluxkit/flux/internal/web/egress"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/testrun/expression"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

// Helpers holds the helper processes of a command. A process starts with its first job.
type Helpers struct {
	mu sync.Mutex
	// kustomizers has a process for each list of allowed hosts.
	kustomizers map[string]*isolated.Kustomizer
	charts      *isolated.Charts
	decryption  *helper.Process
	cloud       *cloud.Client
	signatures  *helper.Process
	schemas     verdict.Process
	expressions expression.Process
	// open are the processes that Close stops.
	open []io.Closer
	// reported are the lines that were printed by reporter.
	reported sync.Map
}

// Close stops the processes.
func (h *Helpers) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	for _, process := range h.open {
		err = errors.Join(err, process.Close())
	}
	return err
}

// running returns the process at place. If there is none yet, it is created, and Close stops it.
func running[P interface {
	comparable
	io.Closer
}](h *Helpers, place *P, create func() P,
) P {
	h.mu.Lock()
	defer h.mu.Unlock()
	var none P
	if *place == none {
		*place = create()
		h.open = append(h.open, *place)
	}
	return *place
}

// Schemas returns the process that validates objects with schemas. Run closes it when the command
// ends.
func (h *Helpers) Schemas() verdict.Schemas {
	return running(h, &h.schemas, func() verdict.Process { return verdict.NewProcess(FindHelper) })
}

// Expressions returns the process that evaluates CEL expressions. Run closes it when the command ends.
func (h *Helpers) Expressions() expression.Evaluator {
	return running(h, &h.expressions, func() expression.Process { return expression.NewProcess(FindHelper) })
}

// RemoteBases holds the hosts of --allow-remote-bases.
type RemoteBases struct{ hosts []string }

// Add adds the flag --allow-remote-bases to fs.
func (r *RemoteBases) Add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&r.hosts, "allow-remote-bases", nil, "hosts that kustomizations may refer to over HTTP, and charts also if they are not public, e.g. github.com (default none)")
}

// Hosts returns the allowed hosts.
func (r *RemoteBases) Hosts() egress.Hosts { return r.hosts }

// Kustomizer returns the process that runs kustomize with the allowed hosts. Run
// closes it when the command ends.
func (a *App) Kustomizer(r RemoteBases) (build.Kustomizer, error) {
	hosts := egress.Hosts(r.hosts)
	if err := hosts.Check(); err != nil {
		return nil, fmt.Errorf("invalid value of --allow-remote-bases: %w", err)
	}
	key, h := strings.Join(hosts, ","), a.Helpers
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kustomizers == nil {
		h.kustomizers = map[string]*isolated.Kustomizer{}
	}
	if h.kustomizers[key] == nil {
		h.kustomizers[key] = isolated.NewKustomizer(FindHelper, &isolated.Bases{Hosts: hosts, Env: a.Env}, h.reporter(a.UI, "kustomize"))
		h.open = append(h.open, h.kustomizers[key])
	}
	return h.kustomizers[key], nil
}

// ChartFetcher returns a process that fetches charts into a folder. The caller closes it.
func (h *Helpers) ChartFetcher(a *App, folder string) *isolated.Charts {
	return isolated.NewCharts(FindHelper, folder, h.reporter(a.UI, "helm"))
}

// Charts returns the process that renders charts. Run closes it when the command ends.
func (h *Helpers) Charts(a *App) (build.Renderer, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("finding the cache directory: %w", err)
	}
	return running(h, &h.charts, func() *isolated.Charts {
		return isolated.NewCharts(FindHelper, filepath.Join(cache, "flux", "charts"), h.reporter(a.UI, "helm"))
	}), nil
}

// Decryption returns the process that decrypts documents of SOPS.
func (a *App) Decryption() *helper.Process {
	h := a.Helpers
	return running(h, &h.decryption, func() *helper.Process {
		return &helper.Process{
			Find: FindHelper, Arguments: []string{sops.Job}, Report: h.reporter(a.UI, "sops"),
			Environment: func(context.Context) ([]string, error) { return sops.Environment(a.Environ()), nil },
		}
	})
}

// Login returns credentials of a cloud provider for the host of a registry. The helper process has
// the environment of flux, where the clients of the provider look for an identity.
func (h *Helpers) Login(ctx context.Context, a *App, provider, host string) (username, password string, err error) {
	credentials, err := h.client(a).Credentials(ctx, provider, host)
	return credentials.Username, credentials.Password, err
}

// GitLogin returns credentials of a provider for a Git repository, from the same process as Login.
func (h *Helpers) GitLogin(ctx context.Context, a *App, r cloud.GitRequest) (cloud.GitCredentials, error) {
	return h.client(a).GitCredentials(ctx, r)
}

// Bucket fetches the objects of a bucket, in the same process as Login.
func (h *Helpers) Bucket(ctx context.Context, a *App, r cloud.BucketRequest) ([]cloud.BucketObject, error) {
	return h.client(a).Bucket(ctx, r)
}

func (h *Helpers) client(a *App) *cloud.Client {
	return running(h, &h.cloud, func() *cloud.Client {
		return &cloud.Client{Mask: a.Secrets.AddLogin, Process: &helper.Process{
			Find: FindHelper, Arguments: []string{cloud.Job}, // the client of AWS logs on stderr
			Environment: func(context.Context) ([]string, error) { return a.Environ(), nil },
		}}
	})
}

// Signatures returns the process that verifies signatures. It gets proxies and certificates for its
// requests, and no credentials.
func (h *Helpers) Signatures(a *App) *helper.Process {
	return running(h, &h.signatures, func() *helper.Process {
		return &helper.Process{
			Find: FindHelper, Arguments: []string{sigstore.Job}, Report: h.reporter(a.UI, "sigstore"),
			Environment: func(context.Context) ([]string, error) {
				return helper.Environment(a.LookupEnv, helper.Network()...), nil
			},
		}
	})
}

// reporter returns a function that prints what a library writes to stderr in helper processes, such
// as the deprecation warnings of kustomize. A line is printed once.
func (h *Helpers) reporter(to *ui.Terminal, library string) func(line string) {
	return func(line string) {
		line, _, _ = strings.Cut(line, " val=") // kustomize logs values, which may be those of a Secret
		text := library + ": " + strings.TrimPrefix(line, "# Warning: ")
		if _, printed := h.reported.LoadOrStore(text, true); !printed {
			to.Warning("%s", text)
		}
	}
}

// FindHelper returns the path of the helper program.
func FindHelper() (string, error) {
	path, err := helper.Find(helper.Program)
	if errors.Is(err, helper.ErrNotFound) {
		err = hint.Errorf("install "+helper.Program+" from the archive of flux in the directory of flux", "%w", err)
	}
	return path, err
}

// FindSandbox returns the path of flux-sandbox: beside flux, the one that 'flux sandbox pull' has
// downloaded for this version, or, unlike the helper program, on PATH, because users run it directly.
func FindSandbox(a *App) (string, error) {
	path, err := helper.Find(helper.Sandbox)
	if err == nil {
		return path, nil
	}
	if store, err := sandboxrelease.Open(); err == nil {
		if path := store.Find(a.Build.Version); path != "" {
			return path, nil
		}
	}
	if path, err = exec.LookPath(helper.Sandbox); err == nil {
		return path, nil
	}
	remedy := "download it with 'flux sandbox pull', or build it in a clone with 'make sandbox controllers'"
	if !sandboxrelease.IsRelease(a.Build.Version) {
		remedy = "build it with 'make sandbox controllers', or download that of a release with 'flux sandbox pull --version VERSION'"
	}
	return "", hint.Errorf(remedy, "%s not found in the directory of flux, among the downloaded ones or on PATH", helper.Sandbox)
}
