package supervisor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"os"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/gitserver"
	"github.com/fluxkit/flux/sandbox/internal/pki"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// check probes a component once and returns nil when it is ready.
type check func(ctx context.Context) error

// http returns a check over plain HTTP.
func (n *network) http(addr, path string) check {
	client := &nethttp.Client{Timeout: 2 * time.Second, Transport: &nethttp.Transport{DialContext: n.dial, DisableKeepAlives: true}}
	return get(client, "http://"+addr+path)
}

// https returns a check over TLS, verified with the sandbox's CA, using the named client
// certificate unless cert is empty.
func (n *network) https(folder state.Folder, addr, path, cert string) check {
	return func(ctx context.Context) error {
		config, err := clientTLS(pki.Dir(folder.Path("pki")), cert)
		if err != nil {
			return err
		}
		transport := &nethttp.Transport{DialContext: n.dial, TLSClientConfig: config, DisableKeepAlives: true}
		client := &nethttp.Client{Timeout: 2 * time.Second, Transport: transport}
		return get(client, "https://"+addr+path)(ctx)
	}
}

// gitListens checks the address file of the Git server, which the server writes
// once all of its listeners are open.
func gitListens(folder state.Folder) check {
	return func(context.Context) error {
		_, err := gitserver.Running(folder.Path("git"))
		return err
	}
}

func get(client *nethttp.Client, url string) check {
	return func(ctx context.Context) error {
		request, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
		err = errors.Join(err, response.Body.Close())
		if err == nil && response.StatusCode != nethttp.StatusOK {
			err = fmt.Errorf("%s returns %s", url, response.Status)
		}
		return err
	}
}

func clientTLS(dir pki.Dir, cert string) (*tls.Config, error) {
	ca, err := os.ReadFile(dir.CA())
	if err != nil {
		return nil, fmt.Errorf("reading certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if cert == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(dir.Cert(cert), dir.Key(cert))
	if err != nil {
		return nil, fmt.Errorf("reading client certificate %s: %w", cert, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// poll repeats a check until it succeeds, the component exits, or ctx is canceled.
func poll(ctx context.Context, ask check, ended <-chan struct{}) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%w; last error: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
