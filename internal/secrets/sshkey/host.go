package sshkey

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// scanTimeout is the maximum duration of a scan.
const scanTimeout = 10 * time.Second

// HostKey is the host key of an SSH server.
type HostKey struct {
	ssh.PublicKey
	// Address is the host and port of the server.
	Address string
}

// Line returns the known_hosts line for the key.
func (k HostKey) Line() string {
	return knownhosts.Line([]string{knownhosts.Normalize(k.Address)}, k.PublicKey)
}

// Fingerprint returns the SHA256 fingerprint that ssh prints.
func (k HostKey) Fingerprint() string { return ssh.FingerprintSHA256(k.PublicKey) }

// errSeen ends the handshake once the host key has been received.
var errSeen = errors.New("host key seen")

// Scan returns the host key of a server. It stops the handshake before authentication. With algorithms, it returns
// the key for the first algorithm that the server supports.
func Scan(ctx context.Context, address string, algorithms []string) (HostKey, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scanTimeout, fmt.Errorf("timed out after %s", scanTimeout))
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return HostKey{}, err
	}
	// Close the connection to end the handshake, which does not support contexts.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		stop()
		_ = conn.Close() // the key has been read
	}()
	key := HostKey{Address: address}
	_, _, _, err = ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, received ssh.PublicKey) error {
			key.PublicKey = received
			return errSeen
		},
	})
	if key.PublicKey != nil {
		return key, nil
	}
	if ctx.Err() != nil {
		return HostKey{}, fmt.Errorf("no response from an SSH server at %s: %w", address, context.Cause(ctx))
	}
	return HostKey{}, fmt.Errorf("no host key from %s: %w", address, err)
}

// Address returns the host and port of an SSH host, with port 22 by default.
func Address(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "22")
}
