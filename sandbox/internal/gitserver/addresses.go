package gitserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/sandbox/internal/file"
)

// ErrNotRunning is returned if no server is running for the root directory.
var ErrNotRunning = errors.New("the git server is not running")

// Addresses contains the base URLs of a running server.
type Addresses struct {
	HTTP       string `json:"http,omitempty"`
	HTTPS      string `json:"https,omitempty"`
	SSH        string `json:"ssh,omitempty"`
	KnownHosts string `json:"knownHosts,omitempty"`
	CAFile     string `json:"caFile,omitempty"`
}

// URL returns the URL of a repository over http, https or ssh, or "" when the scheme is not served.
func (a Addresses) URL(scheme, name string) string {
	base := map[string]string{"http": a.HTTP, "https": a.HTTPS, "ssh": a.SSH}[scheme]
	if base == "" {
		return ""
	}
	return base + "/" + name + ".git"
}

func describe(root string, fronts []front) (Addresses, error) {
	var a Addresses
	for _, f := range fronts {
		host := f.listener.Addr().String()
		switch f.scheme {
		case "http":
			a.HTTP = "http://" + host
		case "https":
			a.HTTPS, a.CAFile = "https://"+host, CAFile(root)
		case "ssh":
			signer, err := hostKey(root)
			if err != nil {
				return a, err
			}
			a.SSH, a.KnownHosts = "ssh://git@"+host, knownHostsLine(host, signer.PublicKey())
		}
	}
	return a, nil
}

func addressesFile(root string) string { return filepath.Join(root, "server.json") }

func (a Addresses) write(root string) error {
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the git server's addresses: %w", err)
	}
	return file.Replace(addressesFile(root), append(data, '\n'), 0o600)
}

func forgetAddresses(root string) { _ = os.Remove(addressesFile(root)) }

// Running returns the addresses of the server for this root directory, or ErrNotRunning. It also checks the server's
// lock, because a killed server leaves the file behind.
func Running(root string) (Addresses, error) {
	var a Addresses
	data, err := os.ReadFile(addressesFile(root))
	if errors.Is(err, fs.ErrNotExist) {
		return a, ErrNotRunning
	}
	if err != nil {
		return a, fmt.Errorf("reading the git server's addresses: %w", err)
	}
	lock, err := file.TryLock(serverLock(root))
	if err == nil {
		_ = lock.Close()
		return a, ErrNotRunning
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("reading the git server's addresses in %s: %w", addressesFile(root), err)
	}
	return a, nil
}

func knownHostsLine(hostPort string, public ssh.PublicKey) string {
	return knownHostsName(hostPort) + " " + string(trimmed(ssh.MarshalAuthorizedKey(public)))
}
