package replay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/internal/kube/kubeconfig"
	"github.com/fluxkit/flux/internal/web/loopback"
)

// Start serves a recording on loopback until the server is closed. The kubeconfig selects the server for Kubernetes
// clients, and contains a token. now is the current time.
func Start(ctx context.Context, r *Recording, now time.Time) (server *loopback.Server, config []byte, err error) {
	token := rand.Text()
	if server, err = loopback.ServeTLS(ctx, r.Handler(token), "flux replay", now); err != nil {
		return nil, nil, fmt.Errorf("serving the recording: %w", err)
	}
	if config, err = newKubeconfig("https://"+server.Address, server.CA, token, r); err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	return server, config, nil
}

// newKubeconfig returns a kubeconfig with the time of the recording, which commands use as the current time.
func newKubeconfig(address string, ca []byte, token string, r *Recording) ([]byte, error) {
	const name = "recording"
	c := api.NewConfig()
	c.CurrentContext = name
	c.Clusters[name] = &api.Cluster{Server: address, CertificateAuthorityData: ca, Extensions: kubeconfig.Recorded(r.Time)}
	c.AuthInfos[name] = &api.AuthInfo{Token: token}
	c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	return clientcmd.Write(*c)
}
