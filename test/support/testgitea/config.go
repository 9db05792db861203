package testgitea

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"golang.org/x/crypto/ssh"
)

// configuration disables Gitea's installation page and all requests to other hosts.
const configuration = `WORK_PATH = {{.Dir}}
RUN_MODE = prod

[server]
PROTOCOL = https
CERT_FILE = {{.CAFile}}
KEY_FILE = {{.Dir}}/server.key
HTTP_ADDR = {{.HTTP.Host}}
HTTP_PORT = {{.HTTP.Port}}
DOMAIN = {{.HTTP.Host}}
ROOT_URL = https://{{.Hostname}}/
START_SSH_SERVER = true
BUILTIN_SSH_SERVER_USER = git
SSH_USER = git
SSH_DOMAIN = {{.Shell.Host}}
SSH_LISTEN_HOST = {{.Shell.Host}}
SSH_LISTEN_PORT = {{.Shell.Port}}
SSH_PORT = {{.Shell.Port}}
SSH_SERVER_HOST_KEYS = {{.Dir}}/ssh_host_key
OFFLINE_MODE = true
GRACEFUL_HAMMER_TIME = 2s

[database]
DB_TYPE = sqlite3
PATH = {{.Dir}}/gitea.db
SQLITE_JOURNAL_MODE = WAL
SQLITE_TIMEOUT = 20000

[security]
INSTALL_LOCK = true
SECRET_KEY = {{random}}
INTERNAL_TOKEN = {{random}}

[oauth2]
JWT_SECRET = {{random}}

[log]
MODE = console
LEVEL = Info

[indexer]
ISSUE_INDEXER_TYPE = db

[queue]
TYPE = channel

[actions]
ENABLED = false

[packages]
ENABLED = false

[migrations]
ALLOW_LOCALNETWORKS = true
SKIP_TLS_VERIFY = true

[cron.update_checker]
ENABLED = false
`

type address struct{ Host, Port string }

// configure writes the configuration file.
func (s *Server) configure() error {
	v := struct {
		Dir, CAFile, Hostname string
		HTTP, Shell           address
	}{Dir: s.Dir, CAFile: s.CAFile, Hostname: s.Hostname}
	var web, shell error
	v.HTTP.Host, v.HTTP.Port, web = net.SplitHostPort(s.Hostname)
	v.Shell.Host, v.Shell.Port, shell = net.SplitHostPort(s.SSH)
	if err := errors.Join(web, shell); err != nil {
		return err
	}
	parsed, err := template.New("app.ini").Funcs(template.FuncMap{"random": random}).Parse(configuration)
	if err != nil {
		return err
	}
	var out strings.Builder
	if err := parsed.Execute(&out, v); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, "app.ini"), []byte(out.String()), 0o600)
}

// random returns a secret of the length that Gitea requires.
func random() (string, error) {
	secret := make([]byte, 32)
	_, err := rand.Read(secret)
	return base64.RawURLEncoding.EncodeToString(secret), err
}

// certify creates a self-signed certificate, a client that trusts it, and the SSH host
// key.
func (s *Server) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Gitea for a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	s.CA, s.CAFile = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), filepath.Join(s.Dir, "server.crt")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	// Gitea would generate an RSA host key, which takes seconds.
	hostKey, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(s.Dir, "ssh_host_key"), pem.EncodeToMemory(hostKey), 0o600),
		os.WriteFile(s.CAFile, s.CA, 0o600),
		os.WriteFile(filepath.Join(s.Dir, "server.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}
