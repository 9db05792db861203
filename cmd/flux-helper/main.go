// Command flux-helper runs jobs for flux in a process with limited memory. The jobs use libraries
// that would slow down the start of every command: Helm, kustomize, SOPS, cloud provider logins,
// object validation, CEL expressions, ResourceSet templates, release signatures, and Graphviz.
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
	"github.com/fluxkit/flux/internal/graphviz/engine"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/helper/gotemplate/execute"
	"github.com/fluxkit/flux/internal/kube/expression/cel"
	"github.com/fluxkit/flux/internal/release/sigstore"
	"github.com/fluxkit/flux/internal/release/sigstore/verifier"
	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/internal/secrets/sops/decrypt"
	"github.com/fluxkit/flux/pkg/build/helm"
	"github.com/fluxkit/flux/pkg/build/isolated"
	"github.com/fluxkit/flux/pkg/build/operator/template"
	"github.com/fluxkit/flux/pkg/validate/schema"
	"github.com/fluxkit/flux/pkg/validate/verdict"
)

func main() { os.Exit(start(os.Args[1:])) }

func start(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetFlags(0) // flux prints the log output of libraries
	handlers, err := handlersOf(args)
	if err == nil && args[0] != string(execute.Job) { // its input is the output of flux, a list of any size
		err = helper.LimitMemory(ctx, os.Exit)
	}
	if err == nil {
		err = helper.Serve(ctx, handlers, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		return 1
	}
	return 0
}

// handlersOf returns the handlers that the arguments select. A process has one job, so that a chart
// cannot reach the keys of another.
func handlersOf(args []string) ([]helper.Handler, error) {
	job := ""
	if len(args) > 0 {
		job = args[0]
	}
	switch {
	case len(args) == 2 && job == string(isolated.RenderJob):
		return isolated.Handlers(&helm.Renderer{Cache: args[1]}), nil
	case len(args) != 1:
	case job == string(isolated.KustomizeJob):
		return isolated.KustomizeHandlers(template.Execute), isolated.RestrictNetwork(os.Getenv)
	case job == string(execute.Job):
		return []helper.Handler{execute.Job.Handler(execute.Execute)}, nil
	case job == string(sops.Job):
		return []helper.Handler{sops.Job.Handler(decrypt.New(os.Getenv))}, nil
	case job == string(verdict.Job):
		return []helper.Handler{verdict.Job.Handler(schema.NewValidator().Validate)}, nil
	case job == string(cel.Job):
		return []helper.Handler{cel.Job.Handler(cel.New().Evaluate)}, nil
	case job == string(cloud.Job):
		return []helper.Handler{cloud.Job.QueryHandler(login.Login), cloud.GitJob.Handler(login.Git), cloud.BucketJob.Handler(bucket.Fetch)}, nil
	case job == string(engine.Job):
		return []helper.Handler{engine.Job.Handler(engine.New().Layout)}, nil
	case job == string(sigstore.Job):
		return []helper.Handler{sigstore.Job.Handler(verifier.Public().Verify)}, nil
	}
	return nil, fmt.Errorf("%s is started by flux and has no commands of its own", helper.Program)
}
