package part

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/fluxkit/flux/sandbox/internal/pki"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// runEtcd runs etcd. Clients require a certificate of the sandbox's CA, because other users of the machine can also
// connect to the loopback address.
func runEtcd(ctx context.Context, folder state.Folder, config state.Config) error {
	dir := pki.Dir(folder.Path("pki"))
	tls := transport.TLSInfo{
		CertFile: dir.Cert("etcd"), KeyFile: dir.Key("etcd"),
		TrustedCAFile: dir.CA(), ClientCertAuth: true,
	}
	c := embed.NewConfig()
	c.Name = "sandbox"
	c.Dir = folder.Path("etcd")
	c.ClientTLSInfo, c.PeerTLSInfo = tls, tls
	client := []url.URL{{Scheme: "https", Host: config.Addr("etcd")}}
	peer := []url.URL{{Scheme: "https", Host: config.Addr("etcd-peer")}}
	c.ListenClientUrls, c.AdvertiseClientUrls = client, client
	c.ListenPeerUrls, c.AdvertisePeerUrls = peer, peer
	c.InitialCluster = c.Name + "=" + peer[0].String()
	c.LogLevel = "warn"
	c.LogOutputs = []string{"stderr"}
	// A power failure loses at most the last second of the sandbox's data;
	// waiting for the disk would slow down every write.
	c.UnsafeNoFsync = true
	c.AutoCompactionMode, c.AutoCompactionRetention = "periodic", "5m"
	c.SnapshotCount = 5000
	c.TickMs, c.ElectionMs = 100, 1000
	// The default of 10 GiB exceeds common limits of virtual memory. A larger store is mapped again, which takes a moment.
	backend.InitialMmapSize = 256 << 20

	server, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("serving etcd: %w", err)
	}
}
