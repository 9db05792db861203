package manifests

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/pkg/controllers"
)

// LogLevels are the levels that the controllers know.
var LogLevels = []string{"debug", "info", "error"}

// ErrOtherVersion says that another version of Flux was asked for than the one
// that this program carries.
var ErrOtherVersion = errors.New("another version of Flux")

// Options is what can be chosen about an installation. [Defaults] returns those
// of a plain `flux install`; the zero value is not valid.
type Options struct {
	// Namespace is where the controllers run.
	Namespace string
	// Components are the names of the controllers to install; the manifests
	// have them in this order. Naming one twice is the same as once.
	Components []string
	// Version is the version of Flux, with or without a leading "v", or empty
	// for the one that this program carries. No other one can be rendered.
	Version string
	// Registry is the host and path in front of the names of the images.
	Registry string
	// ImagePullSecret is the name of a Secret with the registry's credentials,
	// or empty.
	ImagePullSecret string
	// WatchAllNamespaces makes the controllers work on objects in all
	// namespaces instead of only in theirs. The roles stay the same.
	WatchAllNamespaces bool
	// NetworkPolicy adds the policies that close the namespace to others.
	NetworkPolicy bool
	// LogLevel is one of LogLevels.
	LogLevel string
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain string
	// TolerationKeys are the keys of taints that the pods tolerate.
	TolerationKeys []string
}

// Defaults returns the options of an installation about which nothing was said.
func Defaults() Options {
	return Options{
		Namespace:          "flux-system",
		Components:         controllers.Defaults(),
		Registry:           "ghcr.io/fluxcd",
		WatchAllNamespaces: true,
		NetworkPolicy:      true,
		LogLevel:           "info",
		ClusterDomain:      "cluster.local",
	}
}

// Validate returns what is wrong with the first option that cannot be used.
// The templates rely on it: no valid value holds a quote or a backslash.
func (o Options) Validate() error {
	checks := []func() error{
		o.validateVersion,
		o.validateComponents,
		func() error { return named("namespace", o.Namespace, validation.IsDNS1123Label) },
		func() error { return named("cluster domain", o.ClusterDomain, validation.IsDNS1123Subdomain) },
		o.validateRegistry,
		o.validatePullSecret,
		o.validateLogLevel,
		o.validateTolerations,
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) validateVersion() error {
	if o.Version == "" || strings.TrimPrefix(o.Version, "v") == controllers.Distribution {
		return nil
	}
	return fmt.Errorf("%w: this program carries the manifests of Flux %s and cannot fetch those of %q: "+
		"leave --version out, or give the rendered manifests of that version with --manifests",
		ErrOtherVersion, controllers.Distribution, o.Version)
}

func (o Options) validateComponents() error {
	if len(o.Components) == 0 {
		return errors.New("no component is chosen")
	}
	for _, name := range o.Components {
		if _, known := controllers.Find(name); !known {
			all := controllers.Names(func(controllers.Controller) bool { return true })
			return fmt.Errorf("unknown component %q: the components are %s", name, strings.Join(all, ", "))
		}
	}
	return nil
}

func (o Options) validateRegistry() error {
	bad := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/", r)
	}
	switch {
	case o.Registry == "":
		return errors.New("no registry is given")
	case strings.Contains(o.Registry, "://"):
		return fmt.Errorf("invalid registry %q: leave the scheme out, as in ghcr.io/fluxcd", o.Registry)
	case strings.ContainsFunc(o.Registry, bad), slices.Contains(strings.Split(o.Registry, "/"), ""):
		return fmt.Errorf("invalid registry %q: want a host and a path, as in ghcr.io/fluxcd", o.Registry)
	}
	return nil
}

func (o Options) validatePullSecret() error {
	if o.ImagePullSecret == "" {
		return nil
	}
	return named("image pull secret", o.ImagePullSecret, validation.IsDNS1123Subdomain)
}

func (o Options) validateLogLevel() error {
	if slices.Contains(LogLevels, o.LogLevel) {
		return nil
	}
	return fmt.Errorf("invalid log level %q: want one of %s", o.LogLevel, strings.Join(LogLevels, ", "))
}

func (o Options) validateTolerations() error {
	for _, key := range o.TolerationKeys {
		if err := named("toleration key", key, validation.IsQualifiedName); err != nil {
			return err
		}
	}
	return nil
}

func named(what, value string, rule func(string) []string) error {
	if problems := rule(value); len(problems) > 0 {
		return fmt.Errorf("invalid %s %q: %s", what, value, problems[0])
	}
	return nil
}
