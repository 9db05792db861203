package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
)

// choice is the value of a flag that is one of several words.
type choice struct {
	value   *string
	allowed []string
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Type is what help shows in place of the value.
func (c choice) Type() string { return strings.Join(c.allowed, "|") }

// Set refuses everything but the words.
func (c choice) Set(s string) error {
	if !slices.Contains(c.allowed, s) {
		return fmt.Errorf("it has to be one of %s", strings.Join(c.allowed, ", "))
	}
	*c.value = s
	return nil
}

// componentFlags choose the controllers.
type componentFlags struct{ base, extra []string }

func (c *componentFlags) add(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.base, "components", controllers.Defaults(), "the controllers, separated by commas")
	fs.StringSliceVar(&c.extra, "components-extra", nil, "controllers in addition to --components: "+strings.Join(controllers.Extras(), ", "))
}

// all returns the chosen controllers, each once; unknown ones are an error.
func (c *componentFlags) all() ([]string, error) {
	var names []string
	for _, name := range slices.Concat(c.base, c.extra) {
		if _, known := controllers.Find(name); !known {
			every := controllers.Names(func(controllers.Controller) bool { return true })
			return nil, hinted("the components are "+strings.Join(every, ", "), "unknown component %q", name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// manifestFlags choose what is installed. install and bootstrap share them.
type manifestFlags struct {
	components    componentFlags
	options       manifests.Options
	dir           string
	registryCreds string
	force         bool
}

func newManifestFlags() *manifestFlags { return &manifestFlags{options: manifests.Defaults()} }

func (m *manifestFlags) add(fs *pflag.FlagSet) {
	o := &m.options
	m.components.add(fs)
	fs.StringVarP(&o.Version, "version", "v", "", "the version of Flux; others than "+controllers.Distribution+" need --manifests")
	fs.StringVar(&o.Registry, "registry", o.Registry, "the registry and path of the controllers' images")
	fs.StringVar(&o.ImagePullSecret, "image-pull-secret", "", "the name of the Secret with the registry's credentials")
	fs.StringVar(&m.registryCreds, "registry-creds", "", "the registry's credentials as user:password, to create --image-pull-secret from; '-' reads them from standard input")
	fs.BoolVar(&o.WatchAllNamespaces, "watch-all-namespaces", o.WatchAllNamespaces, "watch the objects of all namespaces, not only of the one that Flux is in")
	fs.BoolVar(&o.NetworkPolicy, "network-policy", o.NetworkPolicy, "close the namespace to others with network policies")
	fs.Var(choice{&o.LogLevel, manifests.LogLevels}, "log-level", "how much the controllers log: "+strings.Join(manifests.LogLevels, ", "))
	fs.StringVar(&o.ClusterDomain, "cluster-domain", o.ClusterDomain, "the DNS domain of the cluster")
	fs.StringSliceVar(&o.TolerationKeys, "toleration-keys", nil, "the keys of the taints that the controllers tolerate")
	fs.StringVar(&m.dir, "manifests", "", "install these rendered manifests, a file or a folder, instead of the built-in ones")
	// Hidden in Flux 2.9 too: it is for those who render manifests themselves.
	_ = fs.MarkHidden("manifests")
	fs.BoolVar(&m.force, "force", false, "go on where another tool or a repository manages the installed Flux")
}

// set returns the manifests that the flags ask for. Nothing but local files is read.
func (m *manifestFlags) set(a *app, cmd *cobra.Command) (*manifests.Set, error) {
	if m.dir != "" {
		return manifests.FromDir(m.dir)
	}
	names, err := m.components.all()
	if err != nil {
		return nil, err
	}
	m.options.Components = names
	if m.options.Namespace, err = a.namespace(cmd); err != nil {
		return nil, err
	}
	return manifests.Render(m.options)
}

// builtin returns the resource of a kind that Kubernetes brings along.
func builtin(apiVersion, kind string) kube.Resource {
	return kube.Guess(schema.FromAPIVersionAndKind(apiVersion, kind))
}
