package cachedir

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fluxkit/flux/internal/budget"
)

const (
	// magic is the first line of an entry, with the version of its format.
	magic = "flux cache entry 1\n"
	// renewAfter is the age after which Get renews the time of an entry, so that Trim keeps it.
	renewAfter = 24 * time.Hour
)

// Entries keeps values by key. It is safe for concurrent use, including by several processes.
type Entries struct {
	Dir Dir
	// Version is the version of the program. It is part of each key.
	Version string
	// MaxSize is the maximum total size of the entries.
	MaxSize int64
	Now     func() time.Time

	changed atomic.Bool
}

// Get returns the value of a key. It returns false if the entry does not exist or is corrupt.
func (e *Entries) Get(key string) ([]byte, bool) {
	name := e.name(key)
	content, err := e.Dir.Read(name, budget.HelperOutput)
	if err != nil {
		return nil, false
	}
	value, ok := bytes.CutPrefix(content, header(name, content[min(len(content), len(header(name, nil))):]))
	path := filepath.Join(string(e.Dir), name)
	if info, err := os.Lstat(path); ok && err == nil && e.Now().Sub(info.ModTime()) > renewAfter {
		_ = os.Chtimes(path, time.Time{}, e.Now())
	}
	return value, ok
}

// Put sets the value of a key. A value that cannot be written is computed again next time.
func (e *Entries) Put(key string, value []byte) {
	name := e.name(key)
	if content := append(header(name, value), value...); len(content) <= budget.HelperOutput && e.Dir.Write(name, content) == nil {
		e.changed.Store(true)
	}
}

// Close removes the oldest entries if the cache has grown beyond MaxSize.
func (e *Entries) Close() error {
	if e.changed.Swap(false) {
		e.Dir.Trim(e.MaxSize)
	}
	return nil
}

// name returns the name of the file for a key.
func (e *Entries) name(key string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q", e.Version, key)))
}

// header returns the beginning of an entry: its name, and a digest of the name and the value.
func header(name string, value []byte) []byte {
	digest := sha256.New()
	_, _ = fmt.Fprintf(digest, "%s\n", name) // a hash returns no errors
	_, _ = digest.Write(value)
	return fmt.Appendf(nil, "%s%s\n%x\n", magic, name, digest.Sum(nil))
}
