// Package signature signs Git commits with SSH keys, in the SSHSIG format that
// ssh-keygen -Y verifies, and with OpenPGP keys.
package signature

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// Signer returns the signature of a commit in the format that Git stores.
type Signer func(commit []byte) (string, error)

// The constants of the SSHSIG format (PROTOCOL.sshsig of OpenSSH).
const (
	magic     = "SSHSIG"
	namespace = "git"
	hashed    = "sha512"
	version   = 1
)

// SSH returns a Signer with an SSH key.
func SSH(key ssh.Signer) Signer {
	return func(commit []byte) (string, error) {
		digest := sha512.Sum512(commit)
		signed := ssh.Marshal(struct {
			Namespace, Reserved, Hash string
			Digest                    []byte
		}{namespace, "", hashed, digest[:]})
		signature, err := sign(key, append([]byte(magic), signed...))
		if err != nil {
			return "", fmt.Errorf("signing with the SSH key: %w", err)
		}
		blob := ssh.Marshal(struct {
			Version                   uint32
			PublicKey                 []byte
			Namespace, Reserved, Hash string
			Signature                 []byte
		}{version, key.PublicKey().Marshal(), namespace, "", hashed, ssh.Marshal(signature)})
		var armored bytes.Buffer
		err = pem.Encode(&armored, &pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte(magic), blob...)})
		return armored.String(), err
	}
}

// sign uses SHA-512 for RSA keys instead of the default SHA-1.
func sign(key ssh.Signer, data []byte) (*ssh.Signature, error) {
	if strong, ok := key.(ssh.AlgorithmSigner); ok && key.PublicKey().Type() == ssh.KeyAlgoRSA {
		return strong.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
	}
	return key.Sign(rand.Reader, data)
}
