// Package pki creates the certificates and keys of one sandbox: a certificate
// authority of its own and the certificates that it signs.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is long, because a sandbox may be unused for months.
const lifetime = 10 * 365 * 24 * time.Hour

// Usage describes the subject of a certificate: the address of a server or the name of a client.
type Usage struct {
	CommonName   string
	Organization string
	Server       bool
	Client       bool
}

// Dir is the folder with the certificate authority and the certificates.
type Dir string

// CA returns the path of the CA certificate, the only file that clients need.
func (d Dir) CA() string { return filepath.Join(string(d), "ca.crt") }

// Cert returns the path of the certificate called name.
func (d Dir) Cert(name string) string { return filepath.Join(string(d), name+".crt") }

// Key returns the path of the private key called name.
func (d Dir) Key(name string) string { return filepath.Join(string(d), name+".key") }

// Ensure creates the certificate authority and the named certificates where they
// are missing. Existing ones are kept, so that issued kubeconfigs stay valid.
func (d Dir) Ensure(certs map[string]Usage) error {
	ca, key, err := d.authority()
	if err != nil {
		return err
	}
	for name, usage := range certs {
		if exists(d.Cert(name)) && exists(d.Key(name)) {
			continue
		}
		if err := d.issue(name, usage, ca, key); err != nil {
			return fmt.Errorf("issuing certificate %s: %w", name, err)
		}
	}
	return nil
}

// EnsureKey creates the key pair name.key and name.pub without a certificate, as
// used to sign service account tokens.
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

func (d Dir) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if exists(d.CA()) && exists(d.Key("ca")) {
		return d.load("ca")
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "flux-sandbox"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the key of the certificate authority: %w", err)
	}
	if err := d.sign("ca", template, template, key, key); err != nil {
		return nil, nil, fmt.Errorf("creating the certificate authority: %w", err)
	}
	return d.load("ca")
}

func (d Dir) issue(name string, usage Usage, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: usage.CommonName},
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if usage.Organization != "" {
		template.Subject.Organization = []string{usage.Organization}
	}
	if usage.Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if usage.Server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		template.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return d.sign(name, template, ca, key, caKey)
}

func (d Dir) sign(name string, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template.SerialNumber = serial
	// The clock of a virtual machine may jump back a little.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	if err := d.writeKey(name, key); err != nil {
		return err
	}
	return writePEM(d.Cert(name), "CERTIFICATE", der)
}

func (d Dir) load(name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	der, err := readPEM(d.Cert(name))
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", d.Cert(name), err)
	}
	der, err = readPEM(d.Key(name))
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", d.Key(name), err)
	}
	return cert, key, nil
}

func (d Dir) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding key %s: %w", name, err)
	}
	return writePEM(d.Key(name), "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("reading %s: %w", path, errors.New("no PEM block found"))
	}
	return block.Bytes, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
