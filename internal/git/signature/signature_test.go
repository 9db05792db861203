package signature

import (
	"bytes"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/secrets/sshkey"
)

const commit = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nMessage"

// verify checks a signature as PROTOCOL.sshsig describes it.
func verify(t *testing.T, armored, text string) ssh.PublicKey {
	t.Helper()
	block, rest := pem.Decode([]byte(armored))
	if block == nil || block.Type != "SSH SIGNATURE" || len(rest) > 0 {
		t.Fatalf("no signature: %q", armored)
	}
	body, ok := bytes.CutPrefix(block.Bytes, []byte("SSHSIG"))
	if !ok {
		t.Fatal("the signature does not start with the magic bytes")
	}
	var blob struct {
		Version                   uint32
		PublicKey                 []byte
		Namespace, Reserved, Hash string
		Signature                 []byte
	}
	if err := ssh.Unmarshal(body, &blob); err != nil {
		t.Fatal(err)
	}
	if blob.Version != 1 || blob.Namespace != "git" || blob.Hash != "sha512" {
		t.Fatalf("unexpected signature %+v", blob)
	}
	key, err := ssh.ParsePublicKey(blob.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(blob.Signature, &signature); err != nil {
		t.Fatal(err)
	}
	if signature.Format == ssh.KeyAlgoRSA {
		t.Error("signed with SHA-1")
	}
	digest := sha512.Sum512([]byte(text))
	signed := append([]byte("SSHSIG"), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Digest                    []byte
	}{"git", "", "sha512", digest[:]})...)
	if err := key.Verify(signed, &signature); err != nil {
		t.Error(err)
	}
	return key
}

func TestSSH(t *testing.T) {
	t.Parallel()
	for _, kind := range []sshkey.Kind{{Algorithm: "ed25519"}, {Algorithm: "ecdsa", Curve: "p256"}, {Algorithm: "rsa", Bits: 2048}} {
		pair, err := sshkey.Generate(kind)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := sshkey.Signer(pair.Private, "")
		if err != nil {
			t.Fatal(err)
		}
		signature, err := SSH(signer)([]byte(commit))
		if err != nil {
			t.Fatal(err)
		}
		if key := verify(t, signature, commit); !bytes.Equal(key.Marshal(), signer.PublicKey().Marshal()) {
			t.Errorf("%s: signed by another key", kind.Algorithm)
		}
	}
}

// ring returns a key ring with two keys. The second one is encrypted if there is
// a passphrase.
func ring(t *testing.T, armored bool, passphrase string) ([]byte, []*openpgp.Entity) {
	t.Helper()
	var out bytes.Buffer
	var entities []*openpgp.Entity
	for _, name := range []string{"one", "two"} {
		e, err := openpgp.NewEntity(name, "", name+"@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		entities = append(entities, e)
		if name == "two" && passphrase != "" {
			if err := e.EncryptPrivateKeys([]byte(passphrase), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.SerializePrivateWithoutSigning(&out, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !armored {
		return out.Bytes(), entities
	}
	var text bytes.Buffer
	w, err := armor.Encode(&text, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes(), entities
}

func TestOpenPGP(t *testing.T) {
	t.Parallel()
	for name, armored := range map[string]bool{"armored": true, "binary": false} {
		data, entities := ring(t, armored, "let me in")
		for id, want := range map[string]*openpgp.Entity{
			"":                                   entities[0],
			entities[1].PrimaryKey.KeyIdString(): entities[1],
			"0x" + entities[1].PrimaryKey.KeyIdShortString(): entities[1],
		} {
			signer, err := OpenPGP(data, id, "let me in")
			if err != nil {
				t.Fatalf("%s %q: %v", name, id, err)
			}
			signature, err := signer([]byte(commit))
			if err != nil {
				t.Fatal(err)
			}
			by, err := openpgp.CheckArmoredDetachedSignature(openpgp.EntityList(entities), strings.NewReader(commit), strings.NewReader(signature), nil)
			if err != nil || by.PrimaryKey.KeyId != want.PrimaryKey.KeyId {
				t.Errorf("%s %q: %v", name, id, err)
			}
		}
	}
}

func TestOpenPGPRefuses(t *testing.T) {
	t.Parallel()
	data, entities := ring(t, true, "let me in")
	if _, err := OpenPGP(data, entities[1].PrimaryKey.KeyIdString(), "let me out"); !errors.Is(err, ErrPassphrase) {
		t.Errorf("a wrong passphrase: %v", err)
	}
	if _, err := OpenPGP(data, "DEADBEEF", ""); err == nil {
		t.Error("no error for a missing key")
	}
	if _, err := OpenPGP([]byte("no ring"), "", ""); err == nil {
		t.Error("no error for an invalid key ring")
	}
}
