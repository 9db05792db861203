// Command flux puts Flux on a Kubernetes cluster out of a Git repository and
// lets people and scripts see and steer what Flux does there.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv, time.Now)
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
