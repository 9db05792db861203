package kubeconfig

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// ErrNoContext is returned by Overlay if no context is selected.
var ErrNoContext = errors.New("no context selected")

// Overlay returns a kubeconfig that, as the first file in KUBECONFIG, selects the context and,
// unless it is empty, the namespace for every Kubernetes client. files are the other files in
// KUBECONFIG. The overlay contains only names, no addresses or credentials.
func (f *Flags) Overlay(namespace string) (overlay []byte, files []string, err error) {
	loader, err := f.loader()
	if err != nil {
		return nil, nil, err
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, nil, err
	}
	name := f.contextOf(raw)
	if name == "" {
		return nil, nil, ErrNoContext
	}
	chosen, ok := raw.Contexts[name]
	if !ok {
		return nil, nil, fmt.Errorf("context %q does not exist", name)
	}
	forwarded := api.NewContext()
	forwarded.Cluster, forwarded.AuthInfo, forwarded.Namespace = chosen.Cluster, chosen.AuthInfo, chosen.Namespace
	if namespace != "" {
		forwarded.Namespace = namespace
	}
	overlay, err = clientcmd.Write(api.Config{CurrentContext: name, Contexts: map[string]*api.Context{name: forwarded}})
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the context: %w", err)
	}
	return overlay, loader.ConfigAccess().GetLoadingPrecedence(), nil
}
