package sshkey

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Comparison is the result of comparing a host key with a known_hosts file.
type Comparison int

// The results of Check.
const (
	// Unknown means that the file contains no key of that type for the server.
	Unknown Comparison = iota
	// Match means that the file contains the key.
	Match
	// Mismatch means that the file contains another key of that type or marks the key as revoked.
	Mismatch
)

// Check compares a host key with the text of a known_hosts file.
func Check(text []byte, key HostKey) (Comparison, error) {
	known, err := parseKnownHosts(text)
	if err != nil {
		return Unknown, fmt.Errorf("invalid known_hosts: %w", err)
	}
	return compare(known, key)
}

// CheckFile compares a host key with a known_hosts file. A missing file is treated as an empty file.
func CheckFile(file string, key HostKey) (Comparison, error) {
	known, err := knownhosts.New(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Unknown, nil
	}
	if err != nil {
		return Unknown, fmt.Errorf("reading %s: %w", file, err)
	}
	return compare(known, key)
}

func compare(known ssh.HostKeyCallback, key HostKey) (Comparison, error) {
	err := lookUp(known, key.Address, key.PublicKey)
	var mismatch *knownhosts.KeyError
	switch {
	case err == nil:
		return Match, nil
	case errors.As(err, new(*knownhosts.RevokedError)):
		return Mismatch, nil
	case !errors.As(err, &mismatch):
		return Unknown, err
	case slices.ContainsFunc(mismatch.Want, func(k knownhosts.KnownKey) bool { return k.Key.Type() == key.Type() }):
		return Mismatch, nil
	default:
		return Unknown, nil
	}
}

// lookUp looks up a key by server name. The library also requires a remote address.
func lookUp(known ssh.HostKeyCallback, address string, key ssh.PublicKey) error {
	return known(address, &net.TCPAddr{IP: net.IPv4zero}, key)
}

// ErrUnknownHost is returned when known_hosts contains no key of a server.
var ErrUnknownHost = errors.New("not found in known_hosts")

// Callback returns a callback that verifies the host key of a server with the
// text of a known_hosts file, and the host key algorithms to request.
func Callback(text []byte, address string) (check ssh.HostKeyCallback, algorithms []string, err error) {
	parsed, err := parseKnownHosts(text)
	if err != nil {
		return nil, nil, fmt.Errorf("invalid known_hosts: %w", err)
	}
	check = func(_ string, _ net.Addr, key ssh.PublicKey) error {
		err := lookUp(parsed, address, key)
		var mismatch *knownhosts.KeyError
		if errors.As(err, &mismatch) {
			return fmt.Errorf("host key %[2]s of %[1]s does not match known_hosts", address, ssh.FingerprintSHA256(key))
		}
		return err
	}
	var mismatch *knownhosts.KeyError
	if !errors.As(lookUp(parsed, address, noKey{}), &mismatch) || len(mismatch.Want) == 0 {
		return nil, nil, ErrUnknownHost
	}
	for _, known := range mismatch.Want {
		for _, algorithm := range HostAlgorithms(known.Key.Type()) {
			if !slices.Contains(algorithms, algorithm) {
				algorithms = append(algorithms, algorithm)
			}
		}
	}
	return check, algorithms, nil
}

// HostAlgorithms returns the signature algorithms of a key type, strongest first.
func HostAlgorithms(keyType string) []string {
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

// noKey is a key that no server uses. A lookup with noKey fails with an error
// that lists all known keys of the server.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }
