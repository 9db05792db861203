package isolated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/web/egress"
)

// bases configures the remote bases that kustomize may fetch. Without hosts, kustomize cannot run
// git, and its requests are rejected.
type bases struct {
	hosts egress.Hosts
	pool  *helper.Pool

	mu     sync.Mutex
	proxy  *egress.Proxy
	folder string
}

// passed returns the names of the environment variables that the kustomize process receives.
func passed() []string {
	return []string{"SystemRoot", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"}
}

// environment returns the environment of the process. Git reads no configuration, uses only HTTP
// through the proxy, and clones into a temporary directory.
func (b *bases) environment(ctx context.Context) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var env []string
	for _, name := range passed() {
		if value := b.pool.Env(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	if len(b.hosts) == 0 {
		return append(env, "PATH="), nil
	}
	if b.proxy == nil {
		var err error
		if b.proxy, err = egress.Listen(ctx, b.hosts); err != nil {
			return nil, err
		}
		if b.folder, err = os.MkdirTemp("", "flux-bases-"); err != nil {
			return nil, fmt.Errorf("creating a directory for remote bases: %w", err)
		}
	}
	proxy := b.proxy.URL()
	return append(env, "PATH="+b.pool.Env("PATH"), "HOME="+b.folder, "TMPDIR="+b.folder, "TMP="+b.folder, "TEMP="+b.folder,
		proxyVariable+"="+proxy, "https_proxy="+proxy, "http_proxy="+proxy, "all_proxy="+proxy,
		"GIT_ALLOW_PROTOCOL=http:https", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_ASKPASS="), nil
}

// refused returns the first request that the proxy rejected.
func (b *bases) refused() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proxy == nil {
		return nil
	}
	return b.proxy.Refused()
}

func (b *bases) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	if b.proxy != nil {
		err = b.proxy.Close()
	}
	if b.folder != "" {
		err = errors.Join(err, os.RemoveAll(b.folder))
	}
	b.proxy, b.folder = nil, ""
	return err
}
