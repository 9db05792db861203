package gitserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	clockSkew     = time.Hour
)

// CAFile returns the path of the CA certificate for clients of the server.
func CAFile(root string) string { return filepath.Join(root, "ca.crt") }

func authorityKeyFile(root string) string { return filepath.Join(root, "ca.key") }

// EnsureCA creates the server's CA if it is missing. The key is written first, so that an existing certificate implies
// an existing key.
func EnsureCA(root string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("creating the git server's folder: %w", err)
	}
	return changing(root, func() error {
		_, err := os.Stat(CAFile(root))
		if errors.Is(err, fs.ErrNotExist) {
			return newAuthority(root)
		}
		return err
	})
}

func authority(root string) (*x509.Certificate, crypto.Signer, error) {
	if err := EnsureCA(root); err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(CAFile(root))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the git server's CA: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(CAFile(root), authorityKeyFile(root))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the git server's CA (delete %s for a new one): %w", CAFile(root), err)
	}
	block, _ := pem.Decode(data)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the git server's CA: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, nil, fmt.Errorf("the key of the git server's CA cannot sign: delete %s for a new one", CAFile(root))
	}
	return certificate, signer, nil
}

// newAuthority creates a CA that is constrained to the loopback names of this machine, so that trusting it is safe.
func newAuthority(root string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("creating the git server's CA: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:                serial(),
		Subject:                     pkix.Name{CommonName: "flux-sandbox Git CA"},
		NotBefore:                   now.Add(-clockSkew),
		NotAfter:                    now.Add(authorityLife),
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLenZero:              true,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{"localhost"},
		PermittedIPRanges: []*net.IPNet{
			{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
			{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
		},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("creating the git server's CA: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("creating the git server's CA: %w", err)
	}
	if err := replaceFile(authorityKeyFile(root), encode("PRIVATE KEY", private), 0o600); err != nil {
		return err
	}
	return replaceFile(CAFile(root), encode("CERTIFICATE", der), 0o644)
}

// leaf creates a server certificate at each start; its key is never written to disk.
func leaf(root string) (tls.Certificate, error) {
	issuer, signer, err := authority(root)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("creating the git server's certificate: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("creating the git server's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der, issuer.Raw}, PrivateKey: key}, nil
}

func serial() *big.Int {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // rand.Reader never returns an error
	}
	return number
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// hostKey reads or creates the SSH host key.
func hostKey(root string) (ssh.Signer, error) {
	path := filepath.Join(root, "ssh_host_ed25519_key")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = newHostKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the SSH host key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("reading the SSH host key (delete %s for a new one): %w", path, err)
	}
	return signer, nil
}

func newHostKey(path string) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "flux-sandbox")
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(block)
	return data, replaceFile(path, data, 0o600)
}

// knownHostsName returns an address as in known_hosts: in brackets, unless it has the standard port.
func knownHostsName(hostPort string) string {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || port == "22" {
		return host
	}
	return "[" + host + "]:" + port
}
