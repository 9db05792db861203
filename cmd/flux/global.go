package main

import (
	"cmp"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kubeconfig"
)

// globalFlags are the flags of every command.
type globalFlags struct {
	kube          *kubeconfig.Flags
	namespace     string
	timeout       time.Duration
	verbose       bool
	followContext bool
}

const (
	defaultNamespace = "flux-system"
	defaultTimeout   = 5 * time.Minute
)

func (g *globalFlags) add(fs *pflag.FlagSet, systemNamespace string) {
	g.kube.Add(fs)
	fs.StringVarP(&g.namespace, "namespace", "n", cmp.Or(systemNamespace, defaultNamespace), "namespace of the resources (default from FLUX_SYSTEM_NAMESPACE)")
	fs.DurationVar(&g.timeout, "timeout", defaultTimeout, "maximum time of the operation, e.g. 30s or 5m")
	fs.BoolVar(&g.verbose, "verbose", false, "print generated objects and the duration of each step")
	fs.BoolVar(&g.followContext, "ns-follows-kube-context", false, "use the namespace of the kubeconfig context unless -n is given")
	// The client has no limit of its own; scripts that set one keep working.
	fs.Float32("kube-api-qps", 50, "accepted for compatibility, requests are not limited")
	fs.Int("kube-api-burst", 300, "accepted for compatibility, requests are not limited")
}

// fluxNamespace is where the controllers are unless a flag says otherwise.
func (a *app) fluxNamespace() string {
	if namespace := a.env("FLUX_SYSTEM_NAMESPACE"); namespace != "" {
		return namespace
	}
	return defaultNamespace
}
