// Command flux-helper runs jobs for flux with libraries that would slow down the start of every
// command, and in a process whose memory is limited: Helm, kustomize, SOPS, logins to the
// registries of cloud providers, the validation of objects, CEL expressions, and signatures of
// releases.
//
// flux starts it with the name of a job; see the package internal/helper for the protocol.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/cloud/bucket"
	"github.com/fluxkit/flux/internal/cloud/login"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/release/sigstore"
	"github.com/fluxkit/flux/internal/release/sigstore/verifier"
	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/internal/secrets/sops/decrypt"
	"github.com/fluxkit/flux/pkg/build/helm"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/testrun/expression"
	"github.com/fluxkit/flux/pkg/testrun/expression/cel"
	"github.com/fluxkit/flux/pkg/validate/schema"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

func main() { os.Exit(start(os.Args[1:])) }

func start(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetFlags(0) // flux prints what libraries log
	jobs, err := jobsOf(args)
	if err == nil {
		err = helper.LimitMemory(ctx, os.Exit)
	}
	if err == nil {
		err = helper.Serve(ctx, jobs, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		return 1
	}
	return 0
}

// jobsOf returns the jobs that the arguments select. A process has one job, so that a chart cannot
// reach the keys of another.
func jobsOf(args []string) (map[string]helper.Job, error) {
	switch {
	case len(args) == 2 && args[0] == isolated.RenderJob:
		renderer := &helm.Renderer{Cache: args[1]}
		return map[string]helper.Job{isolated.RenderJob: isolated.Render(renderer), isolated.FetchJob: isolated.Fetch(renderer)}, nil
	case len(args) == 1 && args[0] == isolated.KustomizeJob:
		return map[string]helper.Job{isolated.KustomizeJob: isolated.Kustomize}, isolated.RestrictNetwork(os.Getenv)
	case len(args) == 1 && args[0] == sops.Job:
		return map[string]helper.Job{sops.Job: decrypt.NewJob(os.Getenv)}, nil
	case len(args) == 1 && args[0] == verdict.Job:
		return map[string]helper.Job{verdict.Job: schema.NewValidator().Job}, nil
	case len(args) == 1 && args[0] == expression.Job:
		return map[string]helper.Job{expression.Job: cel.New().Job}, nil
	case len(args) == 1 && args[0] == cloud.Job:
		return map[string]helper.Job{cloud.Job: login.Job, cloud.GitJob: login.GitJob, cloud.BucketJob: bucket.Job}, nil
	case len(args) == 1 && args[0] == sigstore.Job:
		return map[string]helper.Job{sigstore.Job: verifier.NewJob(verifier.Public())}, nil
	}
	return nil, fmt.Errorf("%s is started by flux and has no commands of its own", helper.Program)
}
