package gitserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/sandbox/internal/file"
	"github.com/fluxkit/flux/sandbox/internal/pki"
)

// CAFile returns the path of the CA certificate for clients of the server.
func CAFile(root string) string { return pki.Dir(root).CA() }

// EnsureCA creates the server's CA if it is missing. The CA is constrained to loopback names, so it is safe to trust.
func EnsureCA(root string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("creating the git server's directory: %w", err)
	}
	return changing(root, func() error { return pki.Dir(root).Ensure(nil) })
}

// leaf creates a server certificate at each start; its key is never written to disk.
func leaf(root string) (tls.Certificate, error) {
	if err := EnsureCA(root); err != nil {
		return tls.Certificate{}, err
	}
	return pki.Dir(root).Leaf(pki.Usage{CommonName: "localhost", Server: true})
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
	return data, file.Replace(path, data, 0o600)
}

// knownHostsName returns an address as in known_hosts: in brackets, unless it has the standard port.
func knownHostsName(hostPort string) string {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil || port == "22" {
		return host
	}
	return "[" + host + "]:" + port
}
