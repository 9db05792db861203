// Package loopback serves HTTP to programs on this machine.
package loopback

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
)

const (
	// headerTime is the maximum time for a client to send the request headers.
	headerTime = 10 * time.Second
	// certificateTime is the validity period of a certificate before and after the server starts.
	certificateTime = 30 * 24 * time.Hour
)

// Server is a running server.
type Server struct {
	// Address is HOST:PORT, and CA the certificate with which clients verify the server, nil without TLS.
	Address string
	CA      []byte

	server *http.Server
	ended  chan error
}

// Serve serves HTTP until Close. Requests inherit the values of ctx, but not its cancellation.
func Serve(ctx context.Context, h http.Handler) (*Server, error) {
	return serve(ctx, h, nil, nil)
}

// ServeTLS serves HTTPS with a self-signed certificate. now is the current time.
func ServeTLS(ctx context.Context, h http.Handler, name string, now time.Time) (*Server, error) {
	certificate, ca, err := newCertificate(name, now)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate of the server: %w", err)
	}
	return serve(ctx, h, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, ca)
}

func serve(ctx context.Context, h http.Handler, config *tls.Config, ca []byte) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{Address: listener.Addr().String(), CA: ca, ended: make(chan error, 1), server: &http.Server{
		Handler: h, TLSConfig: config, ReadHeaderTimeout: headerTime, BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog: log.New(io.Discard, "", 0), // clients report failed handshakes
	}}
	go func() {
		defer close(s.ended)
		defer stop()
		if config == nil {
			s.ended <- s.server.Serve(listener)
		} else {
			s.ended <- s.server.ServeTLS(listener, "", "")
		}
	}()
	return s, nil
}

// Close stops the server and its connections. It may be called more than once.
func (s *Server) Close() error {
	err := s.server.Close()
	if ended := <-s.ended; ended != nil && !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func newCertificate(name string, now time.Time) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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
