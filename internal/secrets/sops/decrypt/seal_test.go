package decrypt_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	agekey "filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	sopslib "github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/ini"
	jsonstore "github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/internal/secrets/sops/decrypt"
)

// TestMain is the helper program if it has the argument of one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == string(sops.Job) {
		if err := helper.Serve(context.Background(), []helper.Handler{sops.Job.Handler(decrypt.New(os.Getenv))}, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// decrypter is a Decrypter with a process of its own, which has only the given environment.
type decrypter struct {
	*sops.Decrypter
	reported []string
	warnings []string
}

func newDecrypter(t *testing.T, own sops.Keys, env ...string) *decrypter {
	t.Helper()
	d, home := &decrypter{}, t.TempDir()
	process := sops.NewProcess(&helper.Pool{
		Find: os.Executable, Warn: func(line string) { d.reported = append(d.reported, line) },
		Environ: func() []string { return append([]string{"HOME=" + home}, env...) },
	})
	d.Decrypter = &sops.Decrypter{
		Process: process, Keys: func(context.Context) (sops.Keys, error) { return own, nil },
		Warn: func(_, failure string) { d.warnings = append(d.warnings, failure) },
	}
	t.Cleanup(func() {
		if err := process.Close(); err != nil {
			t.Error(err)
		}
		if len(d.reported) > 0 {
			t.Errorf("stderr of the helper process: %q", d.reported)
		}
	})
	return d
}

// Decrypt decrypts a document.
func (d *decrypter) Decrypt(ctx context.Context, document []byte, format string) ([]byte, error) {
	return d.Decrypter.Decrypt(ctx, "document", document, format)
}

// newDataKey returns the key with which the values of a document are encrypted.
func newDataKey(t *testing.T) []byte {
	t.Helper()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	return key
}

// seal encrypts a document with the library of SOPS. The data key has to be encrypted already in
// each of the master keys.
func seal(t *testing.T, format, plain string, dataKey []byte, master ...keys.MasterKey) []byte {
	t.Helper()
	c := config.NewStoresConfig()
	store := map[string]sopslib.Store{
		"json": jsonstore.NewStore(&c.JSON), "yaml": yaml.NewStore(&c.YAML), "binary": jsonstore.NewBinaryStore(&c.JSONBinary),
		"dotenv": dotenv.NewStore(&c.Dotenv), "ini": ini.NewStore(&c.INI),
	}[format]
	branches, err := store.LoadPlainFile([]byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	tree := sopslib.Tree{Branches: branches, Metadata: sopslib.Metadata{
		KeyGroups: []sopslib.KeyGroup{master}, UnencryptedSuffix: "_plain", Version: "3.13.2", LastModified: time.Now().UTC(),
	}}
	if format == "json" || format == "yaml" {
		tree.Metadata.UnencryptedSuffix, tree.Metadata.EncryptedRegex = "", "^(data|stringData)$"
	}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(dataKey, cipher)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, dataKey, tree.Metadata.LastModified.Format(time.RFC3339)); err != nil {
		t.Fatal(err)
	}
	sealed, err := store.EmitEncryptedFile(tree)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// ageKey returns an age key, and a master key with a data key for it.
func ageKey(t *testing.T, dataKey []byte) (string, keys.MasterKey) {
	t.Helper()
	identity, err := agekey.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	master, err := age.MasterKeyFromRecipient(identity.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := master.Encrypt(dataKey); err != nil {
		t.Fatal(err)
	}
	return identity.String() + "\n", master
}

// pgpKey returns an armored OpenPGP private key, its fingerprint, and a data key encrypted for it.
func pgpKey(t *testing.T, dataKey []byte) (private, fingerprint, sealed string) {
	t.Helper()
	entity, err := openpgp.NewEntity("flux", "", "flux@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var key, message bytes.Buffer
	armored(t, &key, openpgp.PrivateKeyType, func(w io.Writer) error { return entity.SerializePrivate(w, nil) })
	armored(t, &message, "PGP MESSAGE", func(w io.Writer) error {
		plain, err := openpgp.Encrypt(w, []*openpgp.Entity{entity}, nil, &openpgp.FileHints{IsBinary: true}, nil)
		if err != nil {
			return err
		}
		if _, err := plain.Write(dataKey); err != nil {
			return err
		}
		return plain.Close()
	})
	return key.String(), fmt.Sprintf("%X", entity.PrimaryKey.Fingerprint), message.String()
}

func armored(t *testing.T, to io.Writer, block string, write func(io.Writer) error) {
	t.Helper()
	w, err := armor.Encode(to, block, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
