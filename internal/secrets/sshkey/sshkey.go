// Package sshkey generates and parses SSH keys for Git, and scans and verifies
// host keys.
package sshkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// Pair is a private key in PEM format and its public key in authorized_keys format.
type Pair struct {
	Private, Public []byte
}

// Kind describes a key to generate.
type Kind struct {
	// Algorithm is one of Algorithms.
	Algorithm string
	// Bits is the size of an RSA key.
	Bits int
	// Curve is the curve of an ECDSA key, one of Curves.
	Curve string
}

// Algorithms lists the algorithms that Generate supports.
var Algorithms = []string{"rsa", "ecdsa", "ed25519"}

// Curves lists the supported curves of ECDSA keys.
var Curves = []string{"p256", "p384", "p521"}

// The minimum and maximum size of an RSA key: smaller keys are insecure, and servers reject larger ones.
const minBits, maxBits = 2048, 16384

// ValidBits reports whether an RSA key size is valid.
func ValidBits(bits int) bool { return bits >= minBits && bits <= maxBits && bits%8 == 0 }

// Generate generates a key pair.
func Generate(kind Kind) (Pair, error) {
	private, err := generate(kind)
	if err != nil {
		return Pair{}, fmt.Errorf("generating an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the SSH key: %w", err)
	}
	return Load(pem.EncodeToMemory(block), "")
}

func generate(kind Kind) (crypto.PrivateKey, error) {
	switch kind.Algorithm {
	case "rsa":
		if !ValidBits(kind.Bits) {
			return nil, fmt.Errorf("invalid RSA key size %d: must be a multiple of 8 from %d to %d", kind.Bits, minBits, maxBits)
		}
		return rsa.GenerateKey(rand.Reader, kind.Bits)
	case "ecdsa":
		curve, ok := map[string]elliptic.Curve{"p256": elliptic.P256(), "p384": elliptic.P384(), "p521": elliptic.P521()}[kind.Curve]
		if !ok {
			return nil, fmt.Errorf("unknown curve %q", kind.Curve)
		}
		return ecdsa.GenerateKey(curve, rand.Reader)
	case "ed25519":
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	default:
		return nil, fmt.Errorf("unknown algorithm %q", kind.Algorithm)
	}
}

// ErrPassphrase is returned for an encrypted key when the passphrase is missing
// or wrong.
var ErrPassphrase = errors.New("the key is encrypted and the passphrase is missing or wrong")

// Encrypted reports whether a private key requires a passphrase.
func Encrypted(private []byte) bool {
	_, err := ssh.ParsePrivateKey(private)
	var missing *ssh.PassphraseMissingError
	return errors.As(err, &missing)
}

// Signer returns a signer for a private key.
func Signer(private []byte, passphrase string) (ssh.Signer, error) {
	if Encrypted(private) {
		signer, err := ssh.ParsePrivateKeyWithPassphrase(private, []byte(passphrase))
		if err != nil {
			return nil, ErrPassphrase
		}
		return signer, nil
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("invalid private key: %w", err)
	}
	return signer, nil
}

// Load returns the key pair for a private key. An encrypted private key remains encrypted.
func Load(private []byte, passphrase string) (Pair, error) {
	signer, err := Signer(private, passphrase)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Private: private, Public: ssh.MarshalAuthorizedKey(signer.PublicKey())}, nil
}
