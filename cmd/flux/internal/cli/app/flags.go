package app

import (
	"cmp"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kube/kubeconfig"
)

// GlobalFlags holds the values of the global flags.
type GlobalFlags struct {
	Kube          *kubeconfig.Flags
	Namespace     string
	Timeout       time.Duration
	Verbose       bool
	followContext bool
}

const (
	// DefaultNamespace is the default of --namespace.
	DefaultNamespace = "flux-system"
	defaultTimeout   = 5 * time.Minute
)

// Add adds the global flags to fs.
func (g *GlobalFlags) Add(fs *pflag.FlagSet, systemNamespace string) {
	g.Kube.Add(fs)
	fs.StringVarP(&g.Namespace, "namespace", "n", cmp.Or(systemNamespace, DefaultNamespace), "namespace of the resources, overrides FLUX_SYSTEM_NAMESPACE")
	fs.DurationVar(&g.Timeout, "timeout", defaultTimeout, "maximum time of the operation, e.g. 30s or 5m")
	fs.BoolVar(&g.Verbose, "verbose", false, "print generated objects and the duration of each step")
	fs.BoolVar(&g.followContext, "ns-follows-kube-context", false, "use the namespace of the kubeconfig context unless -n is given")
	// The client has no rate limit. Scripts written for Flux 2.9 set these flags.
	fs.Float32("kube-api-qps", 50, "accepted for compatibility, requests are not limited")
	fs.Int("kube-api-burst", 300, "accepted for compatibility, requests are not limited")
}
