// Package sshkey makes and reads the keys by which Git is reached over SSH,
// and asks servers for theirs.
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

// Pair is a private key in PEM form and its public key in the form of
// authorized_keys files.
type Pair struct {
	Private, Public []byte
}

// Kind says what key to make.
type Kind struct {
	// Algorithm is one of Algorithms.
	Algorithm string
	// Bits is the size of an RSA key.
	Bits int
	// Curve is the curve of an ECDSA key, one of Curves.
	Curve string
}

// Algorithms are the kinds of keys that can be made.
var Algorithms = []string{"rsa", "ecdsa", "ed25519"}

// Curves are the curves of ECDSA keys.
var Curves = []string{"p256", "p384", "p521"}

// The sizes between which an RSA key is accepted, in steps of eight: below it
// is unsafe, above servers refuse it.
const minBits, maxBits = 2048, 16384

// ValidBits tells whether an RSA key can have that many bits.
func ValidBits(bits int) bool { return bits >= minBits && bits <= maxBits && bits%8 == 0 }

// Generate makes a key.
func Generate(kind Kind) (Pair, error) {
	private, err := generate(kind)
	if err != nil {
		return Pair{}, fmt.Errorf("making an SSH key: %w", err)
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
			return nil, fmt.Errorf("an RSA key cannot have %d bits", kind.Bits)
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

// ErrPassphrase says that a key is locked and the passphrase is missing or wrong.
var ErrPassphrase = errors.New("the key is locked and the passphrase is missing or wrong")

// Locked tells whether a private key needs a passphrase.
func Locked(private []byte) bool {
	_, err := ssh.ParsePrivateKey(private)
	var locked *ssh.PassphraseMissingError
	return errors.As(err, &locked)
}

// Signer returns what signs with a private key.
func Signer(private []byte, passphrase string) (ssh.Signer, error) {
	if Locked(private) {
		signer, err := ssh.ParsePrivateKeyWithPassphrase(private, []byte(passphrase))
		if err != nil {
			return nil, ErrPassphrase
		}
		return signer, nil
	}
	signer, err := ssh.ParsePrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("reading the private key: %w", err)
	}
	return signer, nil
}

// Load reads a private key; it stays locked where it is.
func Load(private []byte, passphrase string) (Pair, error) {
	signer, err := Signer(private, passphrase)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Private: private, Public: ssh.MarshalAuthorizedKey(signer.PublicKey())}, nil
}
