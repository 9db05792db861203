package decrypt_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/pgp"
	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/internal/secrets/sshkey"
	"github.com/fluxkit/flux/test/support/testsops"
	"github.com/fluxkit/flux/test/support/testtemp"
)

const secretYAML = `# of the team
kind: Secret
data:
    count: 5
    big: 12345678
    "on": true
    # of the list
    list:
        - "12"
    text: |
        two
        lines
replicas: 12345678
`

// formats are documents in each format, as SOPS prints them.
var formats = map[string]string{
	"yaml":   secretYAML,
	"json":   "{\n\t\"kind\": \"Secret\",\n\t\"replicas\": 12345678,\n\t\"data\": {\n\t\t\"count\": 5,\n\t\t\"on\": true,\n\t\t\"list\": [\n\t\t\t\"12\"\n\t\t],\n\t\t\"text\": \"two\\nlines\\n\"\n\t}\n}",
	"dotenv": "# said\nA=1=2\nB_plain=plain\nC=two\\nlines\n",
	"ini":    "[section]\nkey = value\n",
	"binary": "\x00any\n",
}

func TestFormats(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	identity, master := ageKey(t, dataKey)
	for format, plain := range formats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := newDecrypter(t, sops.Keys{Age: []string{"# created by hand\n" + identity}})
			sealed := seal(t, format, plain, dataKey, master)
			if strings.Contains(string(sealed), "lines") || strings.Contains(string(sealed), "1=2") {
				t.Fatalf("the document is not encrypted:\n%s", sealed)
			}
			got, err := d.Decrypt(t.Context(), sealed, format)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.TrimSpace(plain), strings.TrimSpace(string(got))); d != "" {
				t.Errorf("document (-want +got):\n%s", d)
			}
		})
	}
}

// TestOtherImplementation decrypts a document that another implementation of the format encrypted.
func TestOtherImplementation(t *testing.T) {
	t.Parallel()
	s, err := testsops.New()
	if err != nil {
		t.Fatal(err)
	}
	document, err := s.Secret("login", "password", "two\nlines\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := newDecrypter(t, sops.Keys{Age: []string{s.Identity.String()}}).Decrypt(t.Context(), []byte(document), "yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: v1\nkind: Secret\nmetadata:\n    name: login\nstringData:\n    password: |\n        two\n        lines\n"
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("document (-want +got):\n%s", d)
	}
}

func TestWithoutKey(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	_, master := ageKey(t, dataKey)
	other, _ := ageKey(t, dataKey)
	d := newDecrypter(t, sops.Keys{Age: []string{other}})
	if _, err := d.Decrypt(t.Context(), seal(t, "yaml", secretYAML, dataKey, master), "yaml"); !errors.Is(err, sops.ErrNoKey) {
		t.Errorf("with the key of another: %v", err)
	}
	if len(d.warnings) > 0 {
		t.Errorf("warnings %q", d.warnings)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	identity, master := ageKey(t, dataKey)
	sealed := string(seal(t, "yaml", "data:\n    a: secret\n    b: other\n", dataKey, master))
	lines := strings.Split(sealed, "\n")
	_, a, _ := strings.Cut(lines[1], ": ")
	for name, c := range map[string]struct{ document, format, want string }{
		"moved":       {strings.Replace(sealed, "    b: ENC[", "    b: "+a+"\n    old: ENC[", 1), "yaml", "decrypting data.b: the value was changed or moved after its encryption"},
		"clear":       {strings.Replace(sealed, a, "canary", 1), "yaml", "decrypting data.a: the value is not encrypted, but the SOPS metadata requires encryption"},
		"nested":      {"a: " + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "\n", "yaml", "nested more than 500 levels deep"},
		"no metadata": {"a: b\n", "yaml", "reading the encrypted document: sops metadata not found"},
		"too large":   {strings.Repeat("#", 32<<20+1), "dotenv", "the encrypted document is larger than 32 MiB"},
		"many keys":   {strings.Replace(sealed, "    age:\n", "    age:\n"+strings.Repeat("        - {recipient: age1, enc: x}\n", 101), 1), "yaml", "keys, more than 100"},
		"format":      {sealed, "toml", `unknown encrypted document format "toml"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newDecrypter(t, sops.Keys{Age: []string{identity}}).Decrypt(t.Context(), []byte(c.document), c.format)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v; want %s", got, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error shows the value: %v", err)
			}
		})
	}
}

func TestMalformedKeysAreNotShown(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	_, master := ageKey(t, dataKey)
	sealed := seal(t, "yaml", secretYAML, dataKey, master)
	for want, own := range map[string]sops.Keys{
		"malformed age key":     {Age: []string{"AGE-SECRET-KEY-1CANARY"}},
		"malformed OpenPGP key": {PGP: []string{"CANARY"}},
	} {
		_, err := newDecrypter(t, own).Decrypt(t.Context(), sealed, "yaml")
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestPGPKeyOfSecret(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	other, _, _ := pgpKey(t, dataKey)
	private, fingerprint, enc := pgpKey(t, dataKey)
	master := pgp.NewMasterKeyFromFingerprint(fingerprint)
	master.EncryptedKey = enc
	sealed := seal(t, "yaml", secretYAML, dataKey, master)
	got, err := newDecrypter(t, sops.Keys{PGP: []string{other, private}}).Decrypt(t.Context(), sealed, "yaml")
	if d := cmp.Diff(secretYAML, string(got)); err != nil || d != "" {
		t.Errorf("%v, document (-want +got):\n%s", err, d)
	}
	d := newDecrypter(t, sops.Keys{PGP: []string{other}})
	if _, err := d.Decrypt(t.Context(), sealed, "yaml"); !errors.Is(err, sops.ErrNoKey) || len(d.warnings) > 0 {
		t.Errorf("with the key of another: %v, warnings %q", err, d.warnings)
	}
}

// TestPGPKeyOfUser decrypts with the key ring of gpg.
func TestPGPKeyOfUser(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	private, fingerprint, enc := pgpKey(t, dataKey)
	master := pgp.NewMasterKeyFromFingerprint(fingerprint)
	master.EncryptedKey = enc
	sealed := seal(t, "yaml", secretYAML, dataKey, master)
	home := testtemp.Short(t)
	env := []string{"GNUPGHOME=" + home, "PATH=" + os.Getenv("PATH")}
	t.Cleanup(func() {
		gpg(t, env, "", "gpgconf", "--kill", "all")
	})
	without := newDecrypter(t, sops.Keys{}, env...)
	if _, err := without.Decrypt(t.Context(), sealed, "yaml"); !errors.Is(err, sops.ErrNoKey) || len(without.warnings) > 0 {
		t.Errorf("without the key: %v, warnings %q", err, without.warnings)
	}
	gpg(t, env, private, "gpg", "--batch", "--import")
	got, err := newDecrypter(t, sops.Keys{}, env...).Decrypt(t.Context(), sealed, "yaml")
	if d := cmp.Diff(secretYAML, string(got)); err != nil || d != "" {
		t.Errorf("%v, document (-want +got):\n%s", err, d)
	}
}

func gpg(t *testing.T, env []string, input string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin = env, strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// TestAgeKeyCommand decrypts with the key that a command of the user prints.
func TestAgeKeyCommand(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	identity, master := ageKey(t, dataKey)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(identity), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDecrypter(t, sops.Keys{}, "SOPS_AGE_KEY_CMD=cat "+file, "PATH="+os.Getenv("PATH"))
	got, err := d.Decrypt(t.Context(), seal(t, "yaml", secretYAML, dataKey, master), "yaml")
	if d := cmp.Diff(secretYAML, string(got)); err != nil || d != "" {
		t.Errorf("%v, document (-want +got):\n%s", err, d)
	}
}

// TestSSHKey decrypts with an SSH key that the environment specifies, and not with one that is only in the home directory.
func TestSSHKey(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	key, err := sshkey.Generate(sshkey.Kind{Algorithm: "ed25519"})
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	file := filepath.Join(home, ".ssh", "id_ed25519")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, key.Private, 0o600)); err != nil {
		t.Fatal(err)
	}
	master, err := age.MasterKeyFromRecipient(strings.TrimSpace(string(key.Public)))
	if err == nil {
		err = master.Encrypt(dataKey)
	}
	if err != nil {
		t.Fatal(err)
	}
	sealed := seal(t, "yaml", secretYAML, dataKey, master)
	d := newDecrypter(t, sops.Keys{}, "HOME="+home)
	_, err = d.Decrypt(t.Context(), sealed, "yaml")
	want := []string{"SSH key (key group 1): set SOPS_AGE_SSH_PRIVATE_KEY_FILE to use an SSH key"}
	if diff := cmp.Diff(want, d.warnings); !errors.Is(err, sops.ErrNoKey) || diff != "" {
		t.Errorf("%v, warnings %s", err, diff)
	}
	d = newDecrypter(t, sops.Keys{}, "HOME="+t.TempDir(), "SOPS_AGE_SSH_PRIVATE_KEY_FILE="+file)
	if got, err := d.Decrypt(t.Context(), sealed, "yaml"); err != nil || string(got) != secretYAML {
		t.Errorf("%v, %q", err, d.warnings)
	}
}

// TestAnyKey decrypts a document for several keys with one of them, without asking key services.
func TestAnyKey(t *testing.T) {
	t.Parallel()
	dataKey := newDataKey(t)
	identity, master := ageKey(t, dataKey)
	vault := newVault(t, dataKey)
	masters := []keys.MasterKey{vault.key(t, vault.server.URL), master}
	d := newDecrypter(t, sops.Keys{Age: []string{identity}, Vault: vault.token}, "SOPS_HC_VAULT_ALLOWLIST="+vault.server.URL)
	if _, err := d.Decrypt(t.Context(), seal(t, "yaml", secretYAML, dataKey, masters...), "yaml"); err != nil {
		t.Error(err)
	}
	if n := vault.requests.Load(); n != 0 {
		t.Errorf("%d requests to Vault, want 0", n)
	}
}
