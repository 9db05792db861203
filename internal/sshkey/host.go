package sshkey

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// scanTimeout bounds how long a server may take to show its key.
const scanTimeout = 10 * time.Second

// HostKey is the key by which a server proves who it is.
type HostKey struct {
	ssh.PublicKey
	// Address is the host and port that showed it.
	Address string
}

// Line is the key's line of a known_hosts file.
func (k HostKey) Line() string {
	return knownhosts.Line([]string{knownhosts.Normalize(k.Address)}, k.PublicKey)
}

// Fingerprint is the key's SHA256 fingerprint as ssh prints it.
func (k HostKey) Fingerprint() string { return ssh.FingerprintSHA256(k.PublicKey) }

// errSeen ends the handshake once the key is known.
var errSeen = errors.New("host key seen")

// Scan asks a server for its key by a handshake that stops before anybody
// logs in. With algorithms, the key is of the first of these that both know.
func Scan(ctx context.Context, address string, algorithms []string) (HostKey, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scanTimeout, fmt.Errorf("nothing came within %s", scanTimeout))
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return HostKey{}, err
	}
	// A server may accept the connection and then say nothing: closing ends the wait.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		stop()
		_ = conn.Close() // nothing is lost with it
	}()
	key := HostKey{Address: address}
	_, _, _, err = ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, shown ssh.PublicKey) error {
			key.PublicKey = shown
			return errSeen
		},
	})
	if key.PublicKey != nil {
		return key, nil
	}
	if ctx.Err() != nil {
		return HostKey{}, fmt.Errorf("no SSH server answers at %s: %w", address, context.Cause(ctx))
	}
	return HostKey{}, fmt.Errorf("no host key from %s: %w", address, err)
}

// Known looks a server's key up in the text of a known_hosts file: whether it
// stands there, and whether another one of the same type stands there instead.
func Known(text []byte, key HostKey) (known, other bool) {
	host := knownhosts.Normalize(key.Address)
	for len(text) > 0 {
		_, hosts, listed, _, rest, err := ssh.ParseKnownHosts(text)
		if err != nil {
			return known, other
		}
		text = rest
		for _, h := range hosts {
			if h != host || listed.Type() != key.Type() {
				continue
			}
			if string(listed.Marshal()) == string(key.Marshal()) {
				known = true
			} else {
				other = true
			}
		}
	}
	return known, other && !known
}

// Verdict is what a known_hosts file says of a server's key.
type Verdict int

// What a known_hosts file says.
const (
	// Unlisted: it knows no key of that type for the server.
	Unlisted Verdict = iota
	// Listed: it has the key.
	Listed
	// Contradicted: it has another key of the same type, or revokes this one.
	Contradicted
)

// Look looks a server's key up in a known_hosts file. A file that is not there
// lists nothing.
func Look(file string, key HostKey) (Verdict, error) {
	check, err := knownhosts.New(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Unlisted, nil
	}
	if err != nil {
		return Unlisted, fmt.Errorf("reading %s: %w", file, err)
	}
	// The server is looked up by its name; the other address only has to be one.
	err = check(key.Address, &net.TCPAddr{IP: net.IPv4zero}, key.PublicKey)
	var revoked *knownhosts.RevokedError
	var mismatch *knownhosts.KeyError
	switch {
	case err == nil:
		return Listed, nil
	case errors.As(err, &revoked):
		return Contradicted, nil
	case !errors.As(err, &mismatch):
		return Unlisted, err
	case slices.ContainsFunc(mismatch.Want, func(k knownhosts.KnownKey) bool { return k.Key.Type() == key.Type() }):
		return Contradicted, nil
	default:
		return Unlisted, nil
	}
}

// Address returns the host and port of an SSH host, port 22 where none is named.
func Address(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "22")
}
