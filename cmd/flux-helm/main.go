// Command flux-helm renders charts for flux. It is a program of its own since
// Helm's SDK would cost every other command a third of its time to start.
package main

import (
	"context"
	"fmt"
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
	renderer := &helm.Renderer{Cache: os.Args[1]}
	if err := helmprocess.Serve(ctx, renderer, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		return 1
	}
	return 0
}
