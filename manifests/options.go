package manifests

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fluxkit/flux/pkg/controllers"
)

// LogLevels lists the log levels of the controllers.
var LogLevels = []string{"debug", "info", "error"}

// ErrOtherVersion is returned for a Flux version that is not embedded.
var ErrOtherVersion = errors.New("another version of Flux")

// Options contains the options of an installation. [Defaults] returns the defaults of
// `flux install`; the zero value is not valid.
type Options struct {
	// Namespace is the namespace of the controllers.
	Namespace string
	// Components lists the controllers to install, in the order of the manifests.
	// Duplicates are ignored.
	Components []string
	// Version is the version of an embedded distribution of Flux, such as v2.9.6,
	// 2.9.6 or 2.9, or empty for the default. No other version can be rendered.
	Version string
	// Registry is the host and path of the images.
	Registry string
	// ImagePullSecret is the name of a Secret with the registry credentials, or
	// empty.
	ImagePullSecret string
	// WatchAllNamespaces makes the controllers reconcile objects in all
	// namespaces instead of their own. RBAC is the same.
	WatchAllNamespaces bool
	// NetworkPolicy adds NetworkPolicies that deny ingress from other namespaces.
	NetworkPolicy bool
	// LogLevel is one of LogLevels.
	LogLevel string
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain string
	// TolerationKeys lists the keys of taints that the pods tolerate.
	TolerationKeys []string
}

// Defaults returns the default options.
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

// Validate returns an error for the first invalid option. The YAML files rely on
// it: no valid value contains a quote or a backslash.
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
	if _, embedded := controllers.FindDistribution(o.Version); embedded {
		return nil
	}
	return fmt.Errorf("%w: Flux %s are embedded, not %q", ErrOtherVersion, strings.Join(controllers.EmbeddedVersions(), ", "), o.Version)
}

func (o Options) validateComponents() error {
	if len(o.Components) == 0 {
		return errors.New("no component selected")
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
		return errors.New("no registry")
	case strings.Contains(o.Registry, "://"):
		return fmt.Errorf("invalid registry %q: omit the scheme, as in ghcr.io/fluxcd", o.Registry)
	case strings.ContainsFunc(o.Registry, bad), slices.Contains(strings.Split(o.Registry, "/"), ""):
		return fmt.Errorf("invalid registry %q: must be a host and a path, as in ghcr.io/fluxcd", o.Registry)
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
	return fmt.Errorf("invalid log level %q: must be one of %s", o.LogLevel, strings.Join(LogLevels, ", "))
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
