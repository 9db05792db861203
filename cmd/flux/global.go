package main

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// globalFlags are the flags of every command.
type globalFlags struct {
	kube          *genericclioptions.ConfigFlags
	timeout       time.Duration
	verbose       bool
	followContext bool
}

const (
	defaultNamespace = "flux-system"
	defaultTimeout   = 5 * time.Minute
)

func newGlobalFlags() globalFlags {
	kube := genericclioptions.NewConfigFlags(false)
	kube.Timeout = nil // --timeout bounds the operation, not each request
	*kube.Namespace = defaultNamespace
	return globalFlags{kube: kube}
}

func (g *globalFlags) add(fs *pflag.FlagSet, systemNamespace string) {
	if systemNamespace != "" {
		*g.kube.Namespace = systemNamespace
	}
	// cli-runtime gives --server the short form that --silent has here.
	server := g.kube.APIServer
	g.kube.APIServer = nil
	g.kube.AddFlags(fs)
	g.kube.APIServer = server
	fs.StringVar(server, "server", *server, "the address and port of the Kubernetes API server")
	fs.Lookup("namespace").Usage = "the namespace of the objects (default from FLUX_SYSTEM_NAMESPACE)"
	fs.DurationVar(&g.timeout, "timeout", defaultTimeout, "how long the operation may take")
	fs.BoolVar(&g.verbose, "verbose", false, "print generated objects and the time of each step")
	fs.BoolVar(&g.followContext, "ns-follows-kube-context", false, "take the namespace from the kubeconfig's context unless -n is given")
	// The client has no limit of its own; scripts that set one keep working.
	fs.Float32("kube-api-qps", 50, "accepted for compatibility: requests are not limited here")
	fs.Int("kube-api-burst", 300, "accepted for compatibility: requests are not limited here")
}

// fluxNamespace is where the controllers are unless a flag says otherwise.
func (a *app) fluxNamespace() string {
	if namespace := a.env("FLUX_SYSTEM_NAMESPACE"); namespace != "" {
		return namespace
	}
	return defaultNamespace
}
