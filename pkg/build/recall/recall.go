// Package recall caches the output of kustomize and Helm for later runs.
package recall

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Cache stores values between runs. It is safe for concurrent use.
type Cache interface {
	// Get returns the value of a key, and false if there is none.
	Get(key string) ([]byte, bool)
	// Put sets the value of a key, if it can.
	Put(key string, value []byte)
}

// Key returns the cache key for parts. Each part affects the key.
func Key(parts ...any) (string, error) {
	text, err := json.Marshal(parts)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// FileSystem is the files of a source that kustomize reads. Paths are absolute; "/" is the root of
// the source.
type FileSystem interface {
	IsDir(name string) bool
	Exists(name string) bool
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]string, error)
	Glob(pattern string) ([]string, error)
}
