package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/sandbox/internal/file"
)

// SetPassword adds a user, or replaces an existing user with this name.
func (f File) SetPassword(name, password string, readOnly bool) error {
	if name == "" || strings.ContainsAny(name, ":\r\n") {
		return fmt.Errorf("invalid username %q: must not be empty or contain a colon or a line break", name)
	}
	if password == "" {
		return errors.New("the password is empty")
	}
	return f.change(func(set *Set) {
		set.Users = slices.DeleteFunc(set.Users, func(u user) bool { return u.Name == name })
		set.Users = append(set.Users, user{Name: name, secret: newSecret(password, readOnly)})
	})
}

// SetToken sets the bearer token for read-only or read-write access. There is one token for each, because tokens have no
// names.
func (f File) SetToken(token string, readOnly bool) error {
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return errors.New("invalid bearer token: must not be empty or contain whitespace")
	}
	return f.change(func(set *Set) {
		set.Tokens = slices.DeleteFunc(set.Tokens, func(t secret) bool { return t.ReadOnly == readOnly })
		set.Tokens = append(set.Tokens, newSecret(token, readOnly))
	})
}

// SetPublic allows reads without credentials.
func (f File) SetPublic() error { return f.change(func(set *Set) { set.Public = true }) }

// Clear removes all passwords and tokens. SSH keys are kept.
func (f File) Clear() error {
	return f.change(func(set *Set) { set.Users, set.Tokens = nil, nil })
}

// Key describes an authorized SSH key.
type Key struct {
	Fingerprint string `json:"fingerprint"`
	Type        string `json:"type"`
	Access      string `json:"access"`
	Comment     string `json:"comment,omitempty"`
}

// ParseKeys parses public keys in the format of an authorized_keys file.
func ParseKeys(data []byte) ([]ssh.PublicKey, []string, error) {
	if strings.Contains(string(data), "PRIVATE KEY-----") {
		return nil, nil, errors.New("this is a private key: use the public key, usually a file that ends in .pub")
	}
	var keys []ssh.PublicKey
	var comments []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parsed, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, nil, fmt.Errorf("line %q is not an SSH public key such as \"ssh-ed25519 AAAA… comment\"", abbreviated(line))
		}
		keys, comments = append(keys, parsed), append(comments, comment)
	}
	if len(keys) == 0 {
		return nil, nil, errors.New(`no SSH public key found: expected a line such as "ssh-ed25519 AAAA… comment"`)
	}
	return keys, comments, nil
}

// abbreviated shortens a line, which can contain a secret if the wrong file was passed.
func abbreviated(line string) string {
	const shown = 16
	if letters := []rune(line); len(letters) > shown {
		return string(letters[:shown]) + "…"
	}
	return line
}

// AddKey authorizes an SSH key, or changes the access and comment of an authorized key.
func (f File) AddKey(public ssh.PublicKey, comment string, readOnly bool) error {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
	if comment != "" {
		line += " " + comment
	}
	return f.change(func(set *Set) {
		set.Keys = slices.DeleteFunc(set.Keys, func(k key) bool { return k.fingerprint() == ssh.FingerprintSHA256(public) })
		set.Keys = append(set.Keys, key{Authorized: line, ReadOnly: readOnly})
	})
}

// RemoveKey removes the key with this fingerprint and reports whether it was authorized.
func (f File) RemoveKey(fingerprint string) (bool, error) {
	found := false
	err := f.change(func(set *Set) {
		before := len(set.Keys)
		set.Keys = slices.DeleteFunc(set.Keys, func(k key) bool { return k.fingerprint() == fingerprint })
		found = len(set.Keys) < before
	})
	return found, err
}

// ListKeys returns the authorized keys in the order of their addition.
func (s Set) ListKeys() []Key {
	keys := make([]Key, 0, len(s.Keys))
	for _, k := range s.Keys {
		public, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(k.Authorized))
		if err != nil {
			continue
		}
		keys = append(keys, Key{
			Fingerprint: ssh.FingerprintSHA256(public),
			Type:        public.Type(),
			Access:      grant(k.ReadOnly).String(),
			Comment:     comment,
		})
	}
	return keys
}

func (k key) fingerprint() string {
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k.Authorized))
	if err != nil {
		return ""
	}
	return ssh.FingerprintSHA256(public)
}

// change edits the file under a lock, so that concurrent commands do not lose changes, and replaces it with a rename, so
// that a running server reads either the old or the new file.
func (f File) change(edit func(*Set)) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return fmt.Errorf("creating the credentials directory: %w", err)
	}
	lock, err := file.Lock(context.Background(), f.path+".lock")
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // also unlocks
	set, err := f.Load()
	if err != nil {
		return err
	}
	edit(&set)
	data, err := json.MarshalIndent(set, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding credentials: %w", err)
	}
	return file.Replace(f.path, append(data, '\n'), 0o600)
}
