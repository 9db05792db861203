// Command flux-helm renders charts and runs kustomize for flux. It is a program
// of its own since Helm's SDK would cost every other command a third of its time
// to start, and so that what a repository makes it do can be limited and ended.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/fluxkit/flux/pkg/build/helm"
	"github.com/fluxkit/flux/pkg/build/helmprocess"
)

func main() { os.Exit(start()) }

func start() int {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "flux-helm renders charts for flux, which starts it: see 'flux build helmrelease --help'")
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	charts := &http.Client{Transport: http.DefaultTransport} // that of kustomize becomes another
	cache, err := helmprocess.Contain(ctx, os.Args[1], os.Getenv, os.Exit)
	if err == nil {
		err = helmprocess.Serve(ctx, &helm.Renderer{Cache: cache, HTTP: charts}, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		return 1
	}
	return 0
}
