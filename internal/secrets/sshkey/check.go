package sshkey

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// ErrUnknownHost is returned when known_hosts has no key of a server.
var ErrUnknownHost = errors.New("not found in known_hosts")

// Callback returns a callback that verifies the host key of a server with the
// text of a known_hosts file, and the host key algorithms to request.
func Callback(text []byte, address string) (check ssh.HostKeyCallback, algorithms []string, err error) {
	parsed, err := parseKnownHosts(text)
	if err != nil {
		return nil, nil, fmt.Errorf("invalid known_hosts: %w", err)
	}
	// The library looks up the name and also requires a remote address.
	remote := &net.TCPAddr{IP: net.IPv4zero}
	check = func(_ string, _ net.Addr, key ssh.PublicKey) error {
		err := parsed(address, remote, key)
		var mismatch *knownhosts.KeyError
		if errors.As(err, &mismatch) {
			return fmt.Errorf("host key %[2]s of %[1]s does not match known_hosts", address, ssh.FingerprintSHA256(key))
		}
		return err
	}
	var mismatch *knownhosts.KeyError
	if !errors.As(parsed(address, remote, noKey{}), &mismatch) || len(mismatch.Want) == 0 {
		return nil, nil, ErrUnknownHost
	}
	for _, known := range mismatch.Want {
		for _, algorithm := range hostAlgorithms(known.Key.Type()) {
			if !slices.Contains(algorithms, algorithm) {
				algorithms = append(algorithms, algorithm)
			}
		}
	}
	return check, algorithms, nil
}

// hostAlgorithms returns the signature algorithms of a key type, strongest first.
func hostAlgorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

// parseKnownHosts writes the text to a file, because the library only reads files.
func parseKnownHosts(text []byte) (_ ssh.HostKeyCallback, err error) {
	file, err := os.CreateTemp("", "flux-known-hosts-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	_, err = file.Write(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return knownhosts.New(file.Name())
}

// noKey is a key that no server has. The error of a lookup with it lists all
// known keys of the server.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }
