package credentials

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T) ssh.PublicKey {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	key, err := ssh.NewPublicKey(public)
	check(t, err)
	return key
}

func TestRequest(t *testing.T) {
	t.Parallel()
	file := In(t.TempDir())
	check(t, file.SetPassword("ada", "old", true))
	check(t, file.SetPassword("ada", "pass:word", false))
	check(t, file.SetPassword("bob", "bob's", true))
	check(t, file.SetToken("replaced", false))
	check(t, file.SetToken("write", false))
	check(t, file.SetToken("read", true))
	set, err := file.Load()
	check(t, err)

	basic := func(name, password string) string {
		r := http.Request{Header: http.Header{}}
		r.SetBasicAuth(name, password)
		return r.Header.Get("Authorization")
	}
	tests := []struct {
		name, authorization string
		want                Access
	}{
		{"nothing", "", None},
		{"password", basic("ada", "pass:word"), Write},
		{"replaced password", basic("ada", "old"), None},
		{"read-only user", basic("bob", "bob's"), Read},
		{"password of another", basic("bob", "pass:word"), None},
		{"empty password", basic("ada", ""), None},
		{"empty name", basic("", "pass:word"), None},
		{"name in another case", basic("Ada", "pass:word"), None},
		{"token", "Bearer write", Write},
		{"scheme in another case", "bearer write", Write},
		{"read-only token", "Bearer read", Read},
		{"replaced token", "Bearer replaced", None},
		{"empty token", "Bearer ", None},
		{"token without scheme", "write", None},
		{"token as a password", basic("ada", "write"), None},
		{"password as a token", "Bearer pass:word", None},
		{"broken basic", "Basic !", None},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{Header: http.Header{"Authorization": {test.authorization}}}
			if got := set.Request(r); got != test.want {
				t.Errorf("access %v, want %v", got, test.want)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	file := In(t.TempDir())
	mine, robot, stranger := newKey(t), newKey(t), newKey(t)
	check(t, file.AddKey(mine, "me@laptop", true))
	check(t, file.AddKey(mine, "me@desk", false)) // changes the first
	check(t, file.AddKey(robot, "", true))
	set, err := file.Load()
	check(t, err)
	if got, want := []Access{set.Key(mine), set.Key(robot), set.Key(stranger)}, []Access{Write, Read, None}; !reflect.DeepEqual(got, want) {
		t.Errorf("access %v, want %v", got, want)
	}
	want := []Key{
		{ssh.FingerprintSHA256(mine), "ssh-ed25519", "read-write", "me@desk"},
		{ssh.FingerprintSHA256(robot), "ssh-ed25519", "read-only", ""},
	}
	if got := set.ListKeys(); !reflect.DeepEqual(got, want) {
		t.Errorf("keys %+v, want %+v", got, want)
	}
	for _, wantFound := range []bool{true, false} {
		found, err := file.RemoveKey(ssh.FingerprintSHA256(mine))
		check(t, err)
		if found != wantFound {
			t.Errorf("RemoveKey found it: %v, want %v", found, wantFound)
		}
	}
	set, err = file.Load()
	check(t, err)
	if got := set.Key(mine); got != None {
		t.Errorf("a removed key has access %v", got)
	}
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	one, two := newKey(t), newKey(t)
	line := func(k ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k))) }
	noKey := `no SSH public key found: expected a line such as "ssh-ed25519 AAAA… comment"`
	tests := []struct {
		name, text, comments, want string
	}{
		{"one", line(one) + " a comment\n", `["a comment"]`, "<nil>"},
		{"two and comments", "# mine\n" + line(one) + "\n\n" + line(two) + " b", `["" "b"]`, "<nil>"},
		{"empty", "", "[]", noKey},
		{"only comments", "# none yet\n", "[]", noKey},
		{"something else", "hello\n", "[]", `line "hello" is not an SSH public key such as "ssh-ed25519 AAAA… comment"`},
		{"a private key", "-----BEGIN OPENSSH PRIVATE KEY-----\n", "[]", "this is a private key: use the public key, usually a file that ends in .pub"},
		{"one damaged line", line(one) + "\nssh-ed25519 AAAA\n", "[]", `line "ssh-ed25519 AAAA" is not an SSH public key such as "ssh-ed25519 AAAA… comment"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, comments, err := ParseKeys([]byte(test.text))
			if got := fmt.Sprintf("%q", comments); got != test.comments || fmt.Sprint(err) != test.want {
				t.Errorf("ParseKeys: %s, %v\nwant: %s, %s", got, err, test.comments, test.want)
			}
		})
	}
}

func TestRefusedSecrets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  func(File) error
		want string
	}{
		{"no name", func(f File) error { return f.SetPassword("", "x", false) }, `invalid username "": must not be empty or contain a colon or a line break`},
		{"colon", func(f File) error { return f.SetPassword("a:b", "x", false) }, `invalid username "a:b": must not be empty or contain a colon or a line break`},
		{"no password", func(f File) error { return f.SetPassword("a", "", false) }, "the password is empty"},
		{"no token", func(f File) error { return f.SetToken("", false) }, "invalid bearer token: must not be empty or contain whitespace"},
		{"token of two words", func(f File) error { return f.SetToken("a b", false) }, "invalid bearer token: must not be empty or contain whitespace"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := In(t.TempDir())
			if err := test.set(file); fmt.Sprint(err) != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if set, err := file.Load(); err != nil || !set.Open() {
				t.Errorf("the credentials are not empty (%v)", err)
			}
		})
	}
}

func TestClearKeepsKeys(t *testing.T) {
	t.Parallel()
	file, key := In(t.TempDir()), newKey(t)
	check(t, file.SetPassword("ada", "x", false))
	check(t, file.SetToken("t", false))
	check(t, file.AddKey(key, "", false))
	check(t, file.Clear())
	set, err := file.Load()
	check(t, err)
	got := []Access{set.Password("ada", "x"), set.Token("t"), set.Key(key)}
	if want := []Access{None, None, Write}; !reflect.DeepEqual(got, want) || set.Open() {
		t.Errorf("after Clear access is %v and open %v, want %v and not open", got, set.Open(), want)
	}
}

func TestConcurrentChangesAreAllKept(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var writers sync.WaitGroup
	for i := range 20 {
		writers.Go(func() {
			if err := In(root).SetPassword(fmt.Sprint("user", i), "x", false); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	set, err := In(root).Load()
	check(t, err)
	if len(set.Users) != 20 {
		t.Errorf("%d users were kept, want 20", len(set.Users))
	}
	left, err := filepath.Glob(filepath.Join(root, ".credentials-*"))
	check(t, err)
	if len(left) > 0 {
		t.Errorf("temporary files remain: %q", left)
	}
}

func TestDamagedFileIsAnError(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(root, "credentials.json")
	check(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := In(root).Load()
	want := "reading credentials " + path + ": unexpected end of JSON input"
	if fmt.Sprint(err) != want {
		t.Errorf("Load: %v, want %s", err, want)
	}
	if err := In(root).SetToken("t", false); fmt.Sprint(err) != want {
		t.Errorf("SetToken: %v, want %s", err, want)
	}
}

// TestPublic allows reads without credentials, and no other access.
func TestPublic(t *testing.T) {
	t.Parallel()
	file := In(t.TempDir())
	check(t, file.SetPassword("ada", "secret", false))
	check(t, file.SetPublic())
	set, err := file.Load()
	check(t, err)
	for authorization, want := range map[string]Access{"": Read, "Basic YWRhOnNlY3JldA==": Write, "Basic YWRhOm90aGVy": None, "Bearer x": None} {
		r := http.Request{Header: http.Header{}}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		if got := set.Request(&r); got != want {
			t.Errorf("%q has the access %s, want %s", authorization, got, want)
		}
	}
}
