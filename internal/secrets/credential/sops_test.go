package credential

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

func TestAgeKeys(t *testing.T) {
	t.Parallel()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	text := "# created: 2026-11-01\n# public key: age1…\n" + key.String() + "\n\n" + hybrid.String() + "\n"
	got, err := AgeKeys([]byte(text))
	if want := []string{key.Recipient().String(), hybrid.Recipient().String()}; err != nil || !slices.Equal(got, want) {
		t.Errorf("public keys %q, want %q: %v", got, want, err)
	}
	short := key.String()[:len(key.String())-1]
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "no valid age keys"},
		"only comments": {"# nothing\n", "no valid age keys"},
		"a public key":  {key.Recipient().String(), "no valid age keys"},
		"cut":           {short, "no valid age keys"},
		"plugin":        {"AGE-PLUGIN-YUBIKEY-1ABC", "no valid age keys"},
		"one of two":    {key.String() + "\n" + short, "no valid age keys"},
		"encrypted":     {"-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n", "the age key is encrypted"},
	} {
		_, err := AgeKeys([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), short) {
			t.Errorf("%s: the error has the key", name)
		}
	}
}

func TestOpenPGPKeys(t *testing.T) {
	t.Parallel()
	entity, err := openpgp.NewEntity("flux", "", "flux@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	private := armored(t, openpgp.PrivateKeyType, func(w *bytes.Buffer) error { return entity.SerializePrivate(w, nil) })
	public := armored(t, openpgp.PublicKeyType, func(w *bytes.Buffer) error { return entity.Serialize(w) })
	got, err := OpenPGPKeys([]byte(private))
	if err != nil || len(got) != 1 || len(got[0]) != 40 || strings.ToUpper(got[0]) != got[0] {
		t.Errorf("fingerprints %q: %v", got, err)
	}
	if err := entity.EncryptPrivateKeys([]byte("open sesame"), &packet.Config{}); err != nil {
		t.Fatal(err)
	}
	locked := armored(t, openpgp.PrivateKeyType, func(w *bytes.Buffer) error { return entity.SerializePrivateWithoutSigning(w, nil) })
	for name, c := range map[string]struct{ text, want string }{
		"empty":       {"", "no valid OpenPGP key"},
		"public":      {public, "is a public key"},
		"not armored": {"lQOYBF", "no valid OpenPGP key"},
		"cut":         {private[:len(private)/2], "no valid OpenPGP key"},
		"passphrase":  {locked, "has a passphrase"},
	} {
		if _, err := OpenPGPKeys([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func armored(t *testing.T, kind string, serialize func(*bytes.Buffer) error) string {
	t.Helper()
	var binary, text bytes.Buffer
	if err := serialize(&binary); err != nil {
		t.Fatal(err)
	}
	w, err := armor.Encode(&text, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(binary.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
