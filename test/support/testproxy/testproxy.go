// Package testproxy serves real hostnames on loopback for tests: clients connect through
// a proxy and trust a test certificate authority, so that they run as in production.
package testproxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"time"
)

// Proxy forwards connections to its hosts, and rejects all others.
type Proxy struct {
	authority     string
	proxy, secure *httptest.Server
}

// Start serves hosts over HTTPS with a handler. The certificate authority is
// written to a file.
func Start(authority string, hosts []string, handler http.Handler) (*Proxy, error) {
	certificate, err := Certify(authority, hosts)
	if err != nil {
		return nil, err
	}
	p := &Proxy{authority: authority}
	p.secure = httptest.NewUnstartedServer(handler)
	p.secure.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	p.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.secure.StartTLS()
	p.proxy = httptest.NewServer(http.HandlerFunc(p.connect))
	return p, nil
}

// Environment returns the environment variables that clients need to connect to the
// hosts.
func (p *Proxy) Environment() map[string]string {
	return map[string]string{"HTTPS_PROXY": p.proxy.URL, "SSL_CERT_FILE": p.authority}
}

// Close stops the proxy and the hosts.
func (p *Proxy) Close() {
	for _, server := range []*httptest.Server{p.proxy, p.secure} {
		server.CloseClientConnections()
		server.Close()
	}
}

// Certify returns a self-signed certificate for hosts, and writes it to a file. Its ECDSA key needs a tenth of the CPU time of the RSA
// key of httptest for each connection.
func Certify(authority string, hosts []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	err = os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// connect tunnels connections of clients to the hosts.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || err != nil || port != "443" {
		http.Error(w, "only HTTPS is connected", http.StatusMethodNotAllowed)
		return
	}
	server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", p.secure.Listener.Addr().String())
	if err != nil {
		http.Error(w, "connecting to "+host, http.StatusBadGateway)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	_, _ = io.Copy(client, server)
	_ = client.Close()
}
