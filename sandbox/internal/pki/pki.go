// Package pki creates the keys and certificates of a sandbox, which has its own certificate authority.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/file"
)

// lifetime is long, because a sandbox may be unused for months.
const lifetime = 10 * 365 * 24 * time.Hour

// Usage describes the subject of a certificate: the address of a server or the name of a client.
type Usage struct {
	CommonName     string
	Server, Client bool
}

// Dir is the directory with the certificate authority and the certificates.
type Dir string

// CA returns the path of the CA certificate, the only file that clients need.
func (d Dir) CA() string { return filepath.Join(string(d), "ca.crt") }

// Cert returns the path of the named certificate.
func (d Dir) Cert(name string) string { return filepath.Join(string(d), name+".crt") }

// Key returns the path of the named private key.
func (d Dir) Key(name string) string { return filepath.Join(string(d), name+".key") }

// Ensure creates the certificate authority and the named certificates if they are missing. Existing ones are kept, so that
// issued kubeconfigs stay valid.
func (d Dir) Ensure(certs map[string]Usage) error {
	ca, key, err := d.authority()
	if err != nil {
		return err
	}
	for name, usage := range certs {
		if exists(d.Cert(name)) && exists(d.Key(name)) {
			continue
		}
		leaf, der, err := create(usage.template(), ca, key)
		if err == nil {
			err = d.write(name, leaf, der)
		}
		if err != nil {
			return fmt.Errorf("issuing certificate %s: %w", name, err)
		}
	}
	return nil
}

// EnsureKey creates the key pair name.key and name.pub without a certificate, for signing service account tokens.
func (d Dir) EnsureKey(name string) error {
	public := filepath.Join(string(d), name+".pub")
	if exists(d.Key(name)) && exists(public) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("creating key %s: %w", name, err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", name, err)
	}
	if err := writePEM(public, "PUBLIC KEY", der); err != nil {
		return err
	}
	return d.writeKey(name, key)
}

// Token returns a random bearer token.
func Token() (string, error) {
	b := make([]byte, 24)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("creating a token: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// Leaf returns a certificate that is not stored.
func (d Dir) Leaf(usage Usage) (tls.Certificate, error) {
	ca, signer, err := d.load()
	if err != nil {
		return tls.Certificate{}, err
	}
	key, der, err := create(usage.template(), ca, signer)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("issuing a certificate for %s: %w", usage.CommonName, err)
	}
	return tls.Certificate{Certificate: [][]byte{der, ca.Raw}, PrivateKey: key}, nil
}

// authority returns the certificate authority, and creates it if it is missing. It is constrained to the names of servers on
// this machine.
func (d Dir) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if exists(d.CA()) && exists(d.Key("ca")) {
		return d.load()
	}
	key, der, err := create(&x509.Certificate{
		Subject: pkix.Name{CommonName: "flux-sandbox"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: names,
		PermittedIPRanges: []*net.IPNet{
			{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}, {IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
		},
	}, nil, nil)
	if err == nil {
		err = d.write("ca", key, der)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("creating the certificate authority: %w", err)
	}
	return d.load()
}

// names lists the DNS names of servers.
var names = []string{"localhost", "kubernetes.default.svc"}

// template returns the fields of a certificate that create does not set.
func (u Usage) template() *x509.Certificate {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: u.CommonName}, KeyUsage: x509.KeyUsageDigitalSignature}
	if u.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if u.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.IPAddresses, template.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, names
	}
	return template
}

// create creates a certificate signed by signer, or a self-signed one if signer is nil.
func create(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if signer == nil {
		parent, signer = template, key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	// The clock of a virtual machine can jump back slightly.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	return key, der, err
}

// load reads the certificate authority.
func (d Dir) load() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	pair, err := tls.LoadX509KeyPair(d.CA(), d.Key("ca"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate authority (delete %s for a new one): %w", d.CA(), err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("reading the certificate authority (delete %s for a new one): its key is of another kind", d.CA())
	}
	return pair.Leaf, key, nil
}

// write writes the key first, so that a certificate never exists without its key.
func (d Dir) write(name string, key *ecdsa.PrivateKey, der []byte) error {
	if err := d.writeKey(name, key); err != nil {
		return err
	}
	return writePEM(d.Cert(name), "CERTIFICATE", der)
}

func (d Dir) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", name, err)
	}
	return writePEM(d.Key(name), "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return file.Replace(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
