// Package kubeconfig selects the cluster, the user and the namespace from kubectl's flags and the
// kubeconfig files.
package kubeconfig

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// ErrNone is returned if neither a kubeconfig nor --server selects a cluster and the process does
// not run in a pod.
var ErrNone = errors.New("no kubeconfig found")

// Flags are the flags that select a cluster and a user. They have the same names and meanings as
// in kubectl, except that -s is not short for --server.
type Flags struct {
	path      string
	overrides clientcmd.ConfigOverrides
	extra     []string
	// insideCluster reports whether this process runs in a pod.
	insideCluster func() bool
	recordedAt    time.Time
}

// New returns the flags. env reads the environment.
func New(env func(string) string) *Flags {
	return &Flags{insideCluster: func() bool { return env("KUBERNETES_SERVICE_HOST") != "" }}
}

// Add adds the flags to a flag set.
func (f *Flags) Add(fs *pflag.FlagSet) {
	fs.StringVar(&f.path, "kubeconfig", "", "path to the kubeconfig file (default $KUBECONFIG or $HOME/.kube/config)")
	fs.StringVar(&f.overrides.CurrentContext, "context", "", "kubeconfig context, or several: see \"flux help clusters\"")
	fs.StringVar(&f.overrides.Context.Cluster, "cluster", "", "name of the kubeconfig cluster")
	fs.StringVar(&f.overrides.Context.AuthInfo, "user", "", "name of the kubeconfig user")
	f.addServer(fs)
	f.addUser(fs)
	// Unlike kubectl, flux does not cache discovery there.
	fs.String("cache-dir", "$HOME/.kube/cache", "cache directory for the contexts that are forwarded to plugins")
}

func (f *Flags) addServer(fs *pflag.FlagSet) {
	server := &f.overrides.ClusterInfo
	fs.StringVar(&server.Server, "server", "", "address and port of the Kubernetes API server")
	fs.StringVar(&server.CertificateAuthority, "certificate-authority", "", "path to the API server's CA certificate")
	fs.StringVar(&server.TLSServerName, "tls-server-name", "", "server name for certificate validation (default: the host of the server)")
	fs.BoolVar(&server.InsecureSkipTLSVerify, "insecure-skip-tls-verify", false, "skip verification of the server's certificate, which makes the connection insecure")
	fs.BoolVar(&server.DisableCompression, "disable-compression", false, "do not request compressed responses")
}

func (f *Flags) addUser(fs *pflag.FlagSet) {
	user := &f.overrides.AuthInfo
	fs.StringVar(&user.ClientCertificate, "client-certificate", "", "path to the client certificate")
	fs.StringVar(&user.ClientKey, "client-key", "", "path to the client key")
	fs.StringVar(&user.Token, "token", "", "bearer token for authentication to the API server")
	fs.StringVar(&user.Impersonate, "as", "", "user to impersonate, e.g. system:serviceaccount:apps:deployer")
	fs.StringVar(&user.ImpersonateUID, "as-uid", "", "UID to impersonate")
	fs.StringArrayVar(&user.ImpersonateGroups, "as-group", nil, "group to impersonate, can be repeated")
	fs.StringArrayVar(&f.extra, "as-user-extra", nil, "extra attributes of the impersonated user as key=value, can be repeated")
}

// REST returns the client configuration of the cluster, or ErrNone if no cluster is
// configured, for which client-go would default to localhost:8080.
func (f *Flags) REST() (*rest.Config, error) {
	overrides, err := f.effective()
	if err != nil {
		return nil, err
	}
	loader := f.loaderWith(overrides)
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, err
	}
	if api.IsConfigEmpty(&raw) && f.overrides.ClusterInfo.Server == "" && !f.insideCluster() {
		return nil, fmt.Errorf("%w at %s", ErrNone, strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), ", "))
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, err
	}
	f.recordedAt = f.recordedBy(raw)
	return cfg, impersonate(cfg, overrides.AuthInfo)
}

// impersonate applies the impersonation flags inside a pod, where client-go ignores them and would
// use the pod's own permissions.
func impersonate(cfg *rest.Config, as api.AuthInfo) error {
	is := &cfg.Impersonate
	is.UserName, is.UID = cmp.Or(as.Impersonate, is.UserName), cmp.Or(as.ImpersonateUID, is.UID)
	if len(as.ImpersonateGroups) > 0 {
		is.Groups = as.ImpersonateGroups
	}
	if len(as.ImpersonateUserExtra) > 0 {
		is.Extra = as.ImpersonateUserExtra
	}
	if is.UserName == "" && (is.UID != "" || len(is.Groups)+len(is.Extra) > 0) {
		return errors.New("--as-uid, --as-group and --as-user-extra require --as")
	}
	return nil
}

// Raw returns the merged kubeconfig files without flag overrides.
func (f *Flags) Raw() (api.Config, error) {
	loader, err := f.loader()
	if err != nil {
		return api.Config{}, err
	}
	return loader.RawConfig()
}

// Namespace returns the namespace of the selected context, or "default" if the context specifies none.
func (f *Flags) Namespace() (string, error) {
	loader, err := f.loader()
	if err != nil {
		return "", err
	}
	namespace, _, err := loader.Namespace()
	return namespace, err
}

// User returns the name of the kubeconfig user, or "" inside a pod.
func (f *Flags) User() string {
	if f.overrides.Context.AuthInfo != "" {
		return f.overrides.Context.AuthInfo
	}
	raw, err := f.Raw()
	if err != nil {
		return ""
	}
	if c, ok := raw.Contexts[f.contextOf(raw)]; ok {
		return c.AuthInfo
	}
	return ""
}

// Context returns the selected context, or "" without a kubeconfig.
func (f *Flags) Context() string {
	raw, err := f.Raw()
	if err != nil {
		return ""
	}
	return f.contextOf(raw)
}

// Cluster returns the display name of the selected cluster: the context or, without one, the address of the server.
func (f *Flags) Cluster() string {
	return cmp.Or(f.Context(), f.overrides.ClusterInfo.Server, "in-cluster")
}

// InContext returns a copy of the flags with a different context.
func (f *Flags) InContext(name string) *Flags {
	other := *f
	other.overrides.CurrentContext = name
	return &other
}

// contextOf returns the name of the selected context, or "" if there is none.
func (f *Flags) contextOf(raw api.Config) string {
	return cmp.Or(f.overrides.CurrentContext, raw.CurrentContext)
}

func (f *Flags) loader() (clientcmd.ClientConfig, error) {
	overrides, err := f.effective()
	if err != nil {
		return nil, err
	}
	return f.loaderWith(overrides), nil
}

func (f *Flags) loaderWith(overrides *clientcmd.ConfigOverrides) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// effective returns the kubeconfig overrides that the flags specify.
func (f *Flags) effective() (*clientcmd.ConfigOverrides, error) {
	overrides := f.overrides
	extra := map[string][]string{}
	for _, pair := range f.extra {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("invalid --as-user-extra %q: must be key=value", pair)
		}
		extra[key] = append(extra[key], value)
	}
	if len(extra) > 0 {
		overrides.AuthInfo.ImpersonateUserExtra = extra
	}
	return &overrides, nil
}
