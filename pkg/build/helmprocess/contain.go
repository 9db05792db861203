package helmprocess

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

// The exit codes of the program that flux tells apart.
const (
	// ExitMemory is the code of a program that needed more than its limit.
	ExitMemory = 75
	// exitCrash is that of Go's runtime, where the system gives no more memory.
	exitCrash = 2
)

// kustomizeOnly is the argument of a program that runs kustomize, and no Helm.
const kustomizeOnly = "--kustomize"

// proxyVariable names the proxy through which kustomize may fetch remote bases.
const proxyVariable = "HTTPS_PROXY"

// Contain limits the memory of this process, and what kustomize may ask on the
// network. exit is called when the limit is exceeded. It returns the folder of
// the chart cache.
//
// The garbage collector keeps to three quarters of the limit as long as it can.
// What is needed beyond is seen every few milliseconds; where memory is asked
// for faster than that, the system's limit on data ends the process. A limit on
// the address space is not used: Go's runtime reserves more of it than it needs.
func Contain(ctx context.Context, argument string, env func(string) string, exit func(code int)) (cache string, err error) {
	debug.SetMemoryLimit(budget.HelperMemory / 4 * 3)
	if err := limitData(budget.HelperData); err != nil {
		return "", fmt.Errorf("limiting the memory: %w", err)
	}
	go watch(ctx, exit)
	if argument != kustomizeOnly {
		return argument, nil
	}
	through := &http.Transport{Proxy: refuse}
	if address := env(proxyVariable); address != "" {
		proxy, err := url.Parse(address)
		if err != nil {
			return "", fmt.Errorf("reading the address of the proxy: %w", err)
		}
		through.Proxy = http.ProxyURL(proxy)
	}
	http.DefaultTransport = through // kustomize has no other way to be given one
	return "", nil
}

// refuse fails every request, whichever plugin of kustomize sends it.
func refuse(r *http.Request) (*url.URL, error) {
	return nil, fmt.Errorf("remote bases are not allowed: allow the host by --allow-remote-bases %s", r.URL.Hostname())
}

// watch ends the process when it has more memory than it may.
func watch(ctx context.Context, exit func(code int)) {
	used := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		metrics.Read(used)
		if used[0].Value.Uint64()-used[1].Value.Uint64() > budget.HelperMemory {
			exit(ExitMemory)
		}
	}
}
