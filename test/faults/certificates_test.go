package faults_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// authority signs certificates of servers and clients.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	certificate, err := x509.ParseCertificate(der)
	check(t, err)
	return &authority{certificate, key}
}

// issue returns a certificate that ends at a time, and its key, in PEM.
func (a *authority) issue(t *testing.T, until time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "admin"}, NotBefore: until.Add(-2 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	check(t, err)
	encoded, err := x509.MarshalECPrivateKey(private)
	check(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// TestExpiredCertificates checks that the error contains the expired certificate and a fix.
func TestExpiredCertificates(t *testing.T) {
	t.Parallel()
	w := &world{bin: testcluster.Programs(t)}
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		server, client time.Time
		want           []string
	}{
		"server": {past, future, []string{"x509: certificate has expired", "renew the server certificate"}},
		"client": {future, past, []string{"tls: expired certificate", "renew the expired client certificate in the kubeconfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := newAuthority(t)
			certificate, key := ca.issue(t, c.server)
			pair, err := tls.X509KeyPair(certificate, key)
			check(t, err)
			roots := x509.NewCertPool()
			roots.AddCert(ca.certificate)
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, MinVersion: tls.VersionTLS12}
			server.StartTLS()
			t.Cleanup(server.Close)
			kubeconfig := certificateKubeconfig(t, server.URL, ca, c.client)
			for _, args := range [][]string{{"get", "ks"}, {"get", "ks", "--watch"}, {"reconcile", "ks", "app"}, {"why"}, {"check"}, {"bootstrap", "git", "--url=https://example.com/r.git", "--username=u", "--password=p", "--token-auth", "--path=p", "--silent"}} {
				p := w.start(t, kubeconfig, append(args, "--timeout=20s")...)
				select {
				case <-p.ended:
				case <-time.After(testlimit.Wait):
					p.fatalf("does not exit")
				}
				if p.cmd.ProcessState.ExitCode() <= 0 {
					p.fatalf("exit code %d", p.cmd.ProcessState.ExitCode())
				}
				for _, want := range c.want {
					if !strings.Contains(p.stderr.String(), want) {
						p.fatalf("stderr lacks %q", want)
					}
				}
				if strings.Contains(p.stderr.String(), "timed out") {
					p.fatalf("retries what no retry can change")
				}
			}
		})
	}
}

func certificateKubeconfig(t *testing.T, server string, ca *authority, until time.Time) string {
	t.Helper()
	certificate, key := ca.issue(t, until)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	encoded := base64.StdEncoding.EncodeToString
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: k, cluster: {server: %q, certificate-authority-data: %s}}]\ncontexts: [{name: k, context: {cluster: k, user: k}}]\ncurrent-context: k\nusers: [{name: k, user: {client-certificate-data: %s, client-key-data: %s}}]\n",
		server, encoded(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.certificate.Raw})), encoded(certificate), encoded(key))
	check(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
