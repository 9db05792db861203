package app

import (
	"cmp"
	"time"

	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/internal/kubeconfig"
)

// GlobalFlags are the flags of every command.
type GlobalFlags struct {
	Kube          *kubeconfig.Flags
	Namespace     string
	Timeout       time.Duration
	Verbose       bool
	followContext bool
}

// What the flags are without the user.
const (
	DefaultNamespace = "flux-system"
	defaultTimeout   = 5 * time.Minute
)

// Add adds the flags that all commands have.
func (g *GlobalFlags) Add(fs *pflag.FlagSet, systemNamespace string) {
	g.Kube.Add(fs)
	fs.StringVarP(&g.Namespace, "namespace", "n", cmp.Or(systemNamespace, DefaultNamespace), "namespace of the resources (default from FLUX_SYSTEM_NAMESPACE)")
	fs.DurationVar(&g.Timeout, "timeout", defaultTimeout, "maximum time of the operation, e.g. 30s or 5m")
	fs.BoolVar(&g.Verbose, "verbose", false, "print generated objects and the duration of each step")
	fs.BoolVar(&g.followContext, "ns-follows-kube-context", false, "use the namespace of the kubeconfig context unless -n is given")
	// The client has no limit of its own; scripts that set one keep working.
	fs.Float32("kube-api-qps", 50, "accepted for compatibility, requests are not limited")
	fs.Int("kube-api-burst", 300, "accepted for compatibility, requests are not limited")
}
