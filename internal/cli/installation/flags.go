package installation

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/command"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Components choose the controllers.
type Components struct{ base, extra []string }

// Add adds the flags.
func (c *Components) Add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.base, "components", controllers.Defaults(), "the controllers, separated by commas")
	fs.StringSliceVar(&c.extra, "components-extra", nil, "controllers in addition to --components: "+strings.Join(controllers.Extras(), ", "))
}

// All returns the chosen controllers, each once; unknown ones are an error.
func (c *Components) All() ([]string, error) {
	var names []string
	for _, name := range slices.Concat(c.base, c.extra) {
		if _, known := controllers.Find(name); !known {
			every := controllers.Names(func(controllers.Controller) bool { return true })
			return nil, clierr.WithHint("the components are "+strings.Join(every, ", "), "unknown component %q", name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// Manifests choose what is installed. install and bootstrap share them.
type Manifests struct {
	components    Components
	options       manifests.Options
	dir           string
	RegistryCreds string
	Force         bool
}

// NewManifests returns the flags with their defaults.
func NewManifests() *Manifests { return &Manifests{options: manifests.Defaults()} }

// Add adds the flags.
func (m *Manifests) Add(fs *pflag.FlagSet) {
	o := &m.options
	m.components.Add(fs)
	fs.StringVarP(&o.Version, "version", "v", "", "the version of Flux; others than "+controllers.Distribution+" need --manifests")
	fs.StringVar(&o.Registry, "registry", o.Registry, "the registry and path of the controllers' images")
	fs.StringVar(&o.ImagePullSecret, "image-pull-secret", "", "the name of the Secret with the registry's credentials")
	fs.StringVar(&m.RegistryCreds, "registry-creds", "", "the registry's credentials as user:password, to create --image-pull-secret from; '-' reads them from standard input")
	fs.BoolVar(&o.WatchAllNamespaces, "watch-all-namespaces", o.WatchAllNamespaces, "watch the objects of all namespaces, not only of the one that Flux is in")
	fs.BoolVar(&o.NetworkPolicy, "network-policy", o.NetworkPolicy, "close the namespace to others with network policies")
	fs.Var(command.Choice{Value: &o.LogLevel, Allowed: manifests.LogLevels}, "log-level", "how much the controllers log: "+strings.Join(manifests.LogLevels, ", "))
	fs.StringVar(&o.ClusterDomain, "cluster-domain", o.ClusterDomain, "the DNS domain of the cluster")
	fs.StringSliceVar(&o.TolerationKeys, "toleration-keys", nil, "the keys of the taints that the controllers tolerate")
	fs.StringVar(&m.dir, "manifests", "", "install these rendered manifests, a file or a folder, instead of the built-in ones")
	// Hidden in Flux 2.9 too: it is for those who render manifests themselves.
	_ = fs.MarkHidden("manifests")
	fs.BoolVar(&m.Force, "force", false, "go on where another tool or a repository manages the installed Flux")
}

// Set returns the manifests that the flags ask for. Nothing but local files is read.
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
	return manifests.Render(m.options)
}

// BuiltIn returns the resource of a kind that Kubernetes brings along.
func BuiltIn(apiVersion, kind string) kube.Resource {
	return kube.ResourceFor(schema.FromAPIVersionAndKind(apiVersion, kind))
}
