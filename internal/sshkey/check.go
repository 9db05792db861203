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

// ErrUnlisted says that a known_hosts text has no key of a server.
var ErrUnlisted = errors.New("known_hosts has no key of it")

// Check returns what checks the key of a server by the text of a known_hosts
// file, hashed lines and patterns too, and by which algorithms it may prove
// that it has one of those.
func Check(text []byte, address string) (check ssh.HostKeyCallback, algorithms []string, err error) {
	parsed, err := parseKnownHosts(text)
	if err != nil {
		return nil, nil, fmt.Errorf("reading known_hosts: %w", err)
	}
	// The server is looked up by its name; the other address only has to be one.
	where := &net.TCPAddr{IP: net.IPv4zero}
	check = func(_ string, _ net.Addr, key ssh.PublicKey) error {
		err := parsed(address, where, key)
		var mismatch *knownhosts.KeyError
		if errors.As(err, &mismatch) {
			return fmt.Errorf("the server %s shows another host key, %s, than known_hosts has", address, ssh.FingerprintSHA256(key))
		}
		return err
	}
	var mismatch *knownhosts.KeyError
	if !errors.As(parsed(address, where, nobodys{}), &mismatch) || len(mismatch.Want) == 0 {
		return nil, nil, ErrUnlisted
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

// hostAlgorithms are those by which a key of a type signs, the best first.
func hostAlgorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

// parseKnownHosts reads by way of a file, since the library takes nothing else.
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

// nobodys is a key that no server has: what is known instead of it is all.
type nobodys struct{}

func (nobodys) Type() string                        { return "none" }
func (nobodys) Marshal() []byte                     { return nil }
func (nobodys) Verify([]byte, *ssh.Signature) error { return errors.New("it is no key") }
