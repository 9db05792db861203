package replay

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/internal/kube/kubeconfig"
)

const (
	// headerTime is the maximum time to send the header of a request.
	headerTime = 10 * time.Second
	// certificateTime is the validity of the certificate before and after the start.
	certificateTime = 30 * 24 * time.Hour
)

// Server serves a recording.
type Server struct {
	// Kubeconfig selects the server for Kubernetes clients. It contains a token.
	Kubeconfig []byte

	server *http.Server
	ended  chan error
}

// Start serves a recording on loopback until Close. now is the present time.
func Start(ctx context.Context, r *Recording, now time.Time) (*Server, error) {
	certificate, ca, err := newCertificate(now)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate of the server: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving the recording: %w", err)
	}
	token := rand.Text()
	s := &Server{ended: make(chan error, 1)}
	s.Kubeconfig, err = newKubeconfig("https://"+listener.Addr().String(), ca, token, r)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.server = &http.Server{
		Handler: r.Handler(token), ReadHeaderTimeout: headerTime, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:  log.New(io.Discard, "", 0), // clients report failed handshakes
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	s.server.RegisterOnShutdown(stop)
	go func() {
		defer stop()
		s.ended <- s.server.ServeTLS(listener, "", "")
	}()
	return s, nil
}

// Close stops the server and its connections.
func (s *Server) Close() error {
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// newKubeconfig returns a kubeconfig with the time of the recording, from which commands count.
func newKubeconfig(address string, ca []byte, token string, r *Recording) ([]byte, error) {
	const name = "recording"
	c := api.NewConfig()
	c.CurrentContext = name
	c.Clusters[name] = &api.Cluster{Server: address, CertificateAuthorityData: ca, Extensions: kubeconfig.Recorded(r.Time)}
	c.AuthInfos[name] = &api.AuthInfo{Token: token}
	c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	return clientcmd.Write(*c)
}

// newCertificate returns a certificate for loopback that signs itself.
func newCertificate(now time.Time) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "flux replay"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-certificateTime), NotAfter: now.Add(certificateTime),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
