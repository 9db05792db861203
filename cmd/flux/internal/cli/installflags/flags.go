package installflags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Components holds the flags that select controllers.
type Components struct{ base, extra []string }

// Add adds the flags.
func (c *Components) Add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.base, "components", controllers.Defaults(), "controllers to install")
	fs.StringSliceVar(&c.extra, "components-extra", nil, "controllers in addition to --components: "+strings.Join(controllers.Extras(), ", "))
}

// All returns the selected controllers, each once, or an error for an unknown
// one.
func (c *Components) All() ([]string, error) {
	var names []string
	for _, name := range slices.Concat(c.base, c.extra) {
		if _, known := controllers.Find(name); !known {
			every := controllers.Names(func(controllers.Controller) bool { return true })
			return nil, hint.Errorf("the components are "+strings.Join(every, ", "), "unknown component %q", name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Manifests holds the flags of install and bootstrap for the manifests.
type Manifests struct {
	components    Components
	options       manifests.Options
	dir           string
	RegistryCreds string
	Force         bool
}

// NewManifests returns Manifests with the default options.
func NewManifests() *Manifests { return &Manifests{options: manifests.Defaults()} }

// Add adds the flags.
func (m *Manifests) Add(fs *pflag.FlagSet) {
	o := &m.options
	m.components.Add(fs)
	fs.StringVarP(&o.Version, "version", "v", "", "Flux version, e.g. 2.9.6, 2.9 or latest; "+strings.Join(controllers.EmbeddedVersions(), ", ")+" are embedded, others downloaded (default "+controllers.DefaultVersion+")")
	fs.StringVar(&o.Registry, "registry", o.Registry, "registry and path of the controller images")
	fs.StringVar(&o.ImagePullSecret, "image-pull-secret", "", "name of the Secret with the registry credentials")
	fs.StringVar(&m.RegistryCreds, "registry-creds", "", "registry credentials as user:password for --image-pull-secret; '-' for standard input")
	fs.BoolVar(&o.WatchAllNamespaces, "watch-all-namespaces", o.WatchAllNamespaces, "reconcile resources in all namespaces")
	fs.BoolVar(&o.NetworkPolicy, "network-policy", o.NetworkPolicy, "deny ingress from other namespaces with NetworkPolicies")
	fs.Var(command.Choice{Value: &o.LogLevel, Allowed: manifests.LogLevels}, "log-level", "log level of the controllers: "+strings.Join(manifests.LogLevels, ", "))
	fs.StringVar(&o.ClusterDomain, "cluster-domain", o.ClusterDomain, "DNS domain of the cluster")
	fs.StringSliceVar(&o.TolerationKeys, "toleration-keys", nil, "taint keys that the controllers tolerate")
	fs.StringVar(&m.dir, "manifests", "", "path to manifests printed by 'flux install --export', to install without downloading a release")
	fs.BoolVar(&m.Force, "force", false, "proceed even if a repository or another tool manages Flux")
}

// Set returns the selected manifests. Manifests of versions that are not embedded are downloaded.
func (m *Manifests) Set(a *app.App, cmd *cobra.Command) (*manifests.Set, error) {
	if m.dir != "" {
		return manifests.FromDir(m.dir)
	}
	names, err := m.components.All()
	if err != nil {
		return nil, err
	}
	m.options.Components = names
	if m.options.Namespace, err = a.Namespace(cmd); err != nil {
		return nil, err
	}
	return m.render(cmd.Context(), a)
}
