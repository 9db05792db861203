package sshkey

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func TestGenerate(t *testing.T) {
	t.Parallel()
	for want, kind := range map[string]Kind{
		"ssh-rsa":             {Algorithm: "rsa", Bits: 2048},
		"ecdsa-sha2-nistp256": {Algorithm: "ecdsa", Curve: "p256"},
		"ecdsa-sha2-nistp384": {Algorithm: "ecdsa", Curve: "p384"},
		"ecdsa-sha2-nistp521": {Algorithm: "ecdsa", Curve: "p521"},
		"ssh-ed25519":         {Algorithm: "ed25519"},
	} {
		pair, err := Generate(kind)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got, _, _ := strings.Cut(string(pair.Public), " "); got != want {
			t.Errorf("%+v made a %s", kind, got)
		}
		again, err := Load(pair.Private, "")
		if err != nil || string(again.Public) != string(pair.Public) {
			t.Errorf("%s: read back as %s, %v", want, again.Public, err)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{{Algorithm: "dsa"}, {Algorithm: "rsa", Bits: 1024}, {Algorithm: "rsa", Bits: 2049}, {Algorithm: "ecdsa", Curve: "p128"}} {
		if _, err := Generate(kind); err == nil {
			t.Errorf("%+v was made", kind)
		}
	}
}

func TestEncrypted(t *testing.T) {
	t.Parallel()
	pair, err := Generate(Kind{Algorithm: "ed25519"})
	if err != nil {
		t.Fatal(err)
	}
	private, err := ssh.ParseRawPrivateKey(pair.Private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("let me in"))
	if err != nil {
		t.Fatal(err)
	}
	locked := pem.EncodeToMemory(block)
	if Encrypted(pair.Private) || !Encrypted(locked) {
		t.Error("Encrypted is wrong for one of the keys")
	}
	for _, wrong := range []string{"", "let me out"} {
		if _, err := Signer(locked, wrong); !errors.Is(err, ErrPassphrase) {
			t.Errorf("with %q: %v", wrong, err)
		}
	}
	got, err := Load(locked, "let me in")
	if err != nil || string(got.Public) != string(pair.Public) || string(got.Private) != string(locked) {
		t.Errorf("decrypted as %s, %v", got.Public, err)
	}
}

// newServer starts an SSH server with these host keys. It rejects all clients.
func newServer(t *testing.T, kinds ...Kind) (string, []ssh.Signer) {
	t.Helper()
	config := &ssh.ServerConfig{NoClientAuth: false, PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		return nil, errors.New("rejected")
	}}
	var keys []ssh.Signer
	for _, kind := range kinds {
		pair, err := Generate(kind)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := Signer(pair.Private, "")
		if err != nil {
			t.Fatal(err)
		}
		config.AddHostKey(signer)
		keys = append(keys, signer)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _, _, _ = ssh.NewServerConn(conn, config) // always fails: all clients are rejected
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String(), keys
}

func TestScan(t *testing.T) {
	t.Parallel()
	address, keys := newServer(t, Kind{Algorithm: "ed25519"}, Kind{Algorithm: "ecdsa", Curve: "p256"})
	for algorithm, key := range map[string]ssh.Signer{ssh.KeyAlgoED25519: keys[0], ssh.KeyAlgoECDSA256: keys[1]} {
		got, err := Scan(t.Context(), address, []string{algorithm})
		if err != nil {
			t.Fatal(err)
		}
		if want := ssh.FingerprintSHA256(key.PublicKey()); got.Fingerprint() != want {
			t.Errorf("%s: scanned %s, want %s", algorithm, got.Fingerprint(), want)
		}
		host, port, _ := strings.Cut(address, ":")
		if want := "[" + host + "]:" + port + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))); got.Line() != want {
			t.Errorf("%s: line %q, want %q", algorithm, got.Line(), want)
		}
	}
	if _, err := Scan(t.Context(), address, []string{ssh.KeyAlgoRSASHA256}); err == nil {
		t.Error("no error for a key type that the server does not have")
	}
}

func TestScanSilentServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections, nothing is sent
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Scan(ctx, listener.Addr().String(), nil); err == nil || !strings.Contains(err.Error(), "no response from an SSH server") {
		t.Errorf("a silent server: %v", err)
	}
}

// TestCheck compares with the texts of files, and with the files.
func TestCheck(t *testing.T) {
	t.Parallel()
	address, keys := newServer(t, Kind{Algorithm: "ed25519"})
	other, err := Generate(Kind{Algorithm: "ed25519"})
	if err != nil {
		t.Fatal(err)
	}
	ecdsa, err := Generate(Kind{Algorithm: "ecdsa", Curve: "p256"})
	if err != nil {
		t.Fatal(err)
	}
	shown := HostKey{keys[0].PublicKey(), address}
	host := knownhosts.Normalize(address)
	for name, test := range map[string]struct {
		text string
		want Comparison
	}{
		"empty":               {"", Unknown},
		"itself":              {shown.Line() + "\n", Match},
		"another key":         {host + " " + string(other.Public), Mismatch},
		"after a comment":     {"# hosts\n\n" + shown.Line() + "\n", Match},
		"another and itself":  {host + " " + string(other.Public) + shown.Line(), Match},
		"among host names":    {"example.com," + shown.Line(), Match},
		"another key, hashed": {knownhosts.HashHostname(host) + " " + string(other.Public), Mismatch},
		"another type":        {host + " " + string(ecdsa.Public), Unknown},
		"another host":        {"example.com " + string(other.Public), Unknown},
		"revoked":             {"@revoked * " + strings.SplitN(shown.Line(), " ", 2)[1] + "\n", Mismatch},
	} {
		file := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := CheckFile(file, shown); err != nil || got != test.want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
		if got, err := Check([]byte(test.text), shown); err != nil || got != test.want {
			t.Errorf("%s: the text: %d, %v", name, got, err)
		}
	}
	if got, err := Check([]byte("nonsense\n"), shown); got != Unknown || err == nil {
		t.Errorf("an invalid text: %d, %v", got, err)
	}
	if got, err := CheckFile(filepath.Join(t.TempDir(), "missing"), shown); got != Unknown || err != nil {
		t.Errorf("a missing file: %d, %v", got, err)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"example.com": "example.com:22", "example.com:2222": "example.com:2222", "[::1]": "[::1]:22", "[::1]:2222": "[::1]:2222",
	} {
		if got := Address(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

// FuzzLoad loads arbitrary text as a key. A key that loads has the public key of
// its signer.
func FuzzLoad(f *testing.F) {
	for _, kind := range []Kind{{Algorithm: "ed25519"}, {Algorithm: "ecdsa", Curve: "p256"}} {
		pair, err := Generate(kind)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(pair.Private, "")
	}
	f.Add([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n"), "open sesame")
	f.Fuzz(func(t *testing.T, private []byte, passphrase string) {
		pair, err := Load(private, passphrase)
		if err != nil {
			return
		}
		signer, err := Signer(pair.Private, passphrase)
		if err != nil {
			t.Fatal(err)
		}
		if public := ssh.MarshalAuthorizedKey(signer.PublicKey()); !bytes.Equal(bytes.TrimSpace(public), bytes.TrimSpace(pair.Public)) {
			t.Errorf("the public key is %q, want %q", pair.Public, public)
		}
	})
}
