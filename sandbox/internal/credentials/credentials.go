// Package credentials stores the users, tokens and SSH keys of the sandbox's Git server and registry, in a file that can be
// changed while the servers run.
package credentials

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"
)

// Access is the permission of a client. A higher value includes the lower ones.
type Access int

// The values of Access, in ascending order.
const (
	None Access = iota
	Read
	Write
)

// String returns the printed name of the access.
func (a Access) String() string {
	switch a {
	case Read:
		return "read-only"
	case Write:
		return "read-write"
	default:
		return "none"
	}
}

func grant(readOnly bool) Access {
	if readOnly {
		return Read
	}
	return Write
}

// secret is a salted digest, so that the file contains no password or token.
type secret struct {
	Salt     []byte `json:"salt"`
	Digest   []byte `json:"digest"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

func newSecret(value string, readOnly bool) secret {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never returns an error
	return secret{Salt: salt, Digest: digest(salt, value), ReadOnly: readOnly}
}

func digest(salt []byte, value string) []byte {
	mac := hmac.New(sha256.New, salt)
	mac.Write([]byte(value))
	return mac.Sum(nil)
}

func (s secret) matches(value string) bool {
	return subtle.ConstantTimeCompare(s.Digest, digest(s.Salt, value)) == 1
}

type user struct {
	Name string `json:"name"`
	secret
}

type key struct {
	Authorized string `json:"authorized"`
	ReadOnly   bool   `json:"readOnly,omitempty"`
}

// Set contains the credentials in the file.
type Set struct {
	Users  []user   `json:"users,omitempty"`
	Tokens []secret `json:"tokens,omitempty"`
	Keys   []key    `json:"keys,omitempty"`
	// Public is set if reads require no credentials.
	Public bool `json:"public,omitempty"`
}

// Open reports whether no credentials are configured, so that every client has full access.
func (s Set) Open() bool {
	return len(s.Users) == 0 && len(s.Tokens) == 0 && len(s.Keys) == 0
}

// Password returns the access of a username and password. It compares with every user, so that the duration does not
// disclose usernames.
func (s Set) Password(name, password string) Access {
	access := None
	for _, u := range s.Users {
		sameName := subtle.ConstantTimeCompare([]byte(u.Name), []byte(name)) == 1
		if u.matches(password) && sameName {
			access = grant(u.ReadOnly)
		}
	}
	return access
}

// Token returns the access of a bearer token.
func (s Set) Token(value string) Access {
	access := None
	for _, t := range s.Tokens {
		if t.matches(value) {
			access = max(access, grant(t.ReadOnly))
		}
	}
	return access
}

// Key returns the access of an SSH public key.
func (s Set) Key(offered ssh.PublicKey) Access {
	access := None
	for _, k := range s.Keys {
		known, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k.Authorized))
		if err != nil {
			continue
		}
		if subtle.ConstantTimeCompare(known.Marshal(), offered.Marshal()) == 1 {
			access = grant(k.ReadOnly)
		}
	}
	return access
}

// File is the credentials file of a server.
type File struct{ path string }

// In returns the credentials file in the root directory of a server.
func In(root string) File { return File{path: filepath.Join(root, "credentials.json")} }

// Load reads the file. A missing file is an empty set; an invalid file is an error and does not grant access.
func (f File) Load() (Set, error) {
	var set Set
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return set, nil
	}
	if err != nil {
		return set, fmt.Errorf("reading credentials: %w", err)
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return set, fmt.Errorf("reading credentials %s: %w", f.path, err)
	}
	return set, nil
}
