// Package budget bounds the work that input from repositories, charts,
// registries and clusters can cause. One Budget counts a whole build or one
// unpacking; what exceeds it is refused before it is held in memory.
package budget

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits are the bounds of a Budget.
type Limits struct {
	// Bytes and Files bound what is read, or unpacked, in total. A file that is
	// read twice counts twice.
	Bytes int64
	Files int64
	// FileBytes bounds one file, and one entry of an archive.
	FileBytes int64
	// Entries bounds the entries of an archive, of whatever type.
	Entries int64
	// Objects bounds the objects that a build results in.
	Objects int64
	// Nodes bounds the YAML nodes of those objects.
	Nodes int64
	// Output bounds the bytes that charts and kustomize return.
	Output int64
	// Stored bounds the bytes of an archive as it is fetched, compressed.
	Stored int64
}

// Default returns the limits of a build and of an unpacking. They are some ten
// times what the largest repositories of manifests need, and keep the memory of
// a command below one GiB.
func Default() Limits {
	return Limits{
		Bytes: 256 << 20, Files: 200_000, FileBytes: 32 << 20, Entries: 100_000,
		Objects: 100_000, Nodes: 4_000_000, Output: 256 << 20, Stored: 128 << 20,
	}
}

// Unpacking returns the limits of an archive that is unpacked to disk: what it
// holds is never in memory as a whole.
func Unpacking() Limits {
	return Limits{Bytes: 1 << 30, Files: 200_000, FileBytes: 1 << 30, Entries: 100_000}
}

// maxName bounds the name of an archive's entry, as file systems do.
const maxName = 4096

// HelperMemory bounds the memory of the helper process, which runs kustomize
// and Helm.
const HelperMemory = 512 << 20

// HelperData is where the system ends the helper process, if it asks for memory
// faster than that is noticed.
const HelperData = 896 << 20

// HelperGrace is how long the helper process has to stop by itself.
const HelperGrace = 200 * time.Millisecond

// Budget counts the work of one build or one unpacking. Its methods may be
// called by several goroutines at a time; a nil Budget has no limits.
type Budget struct {
	limits                                                  Limits
	mu                                                      sync.Mutex
	bytes, files, entries, folders, objects, nodes, written int64
}

// New returns a budget of which nothing is used.
func New(limits Limits) *Budget { return &Budget{limits: limits} }

// ExceededError is returned for input that exceeds a limit.
type ExceededError struct {
	// Name is the file, archive or object that exceeds it.
	Name string
	// Fact is what is too much, with the limit.
	Fact string
}

func (e *ExceededError) Error() string {
	if e.Name == "" {
		return e.Fact
	}
	return e.Name + ": " + e.Fact
}

func exceeded(name, format string, args ...any) error {
	return &ExceededError{name, fmt.Sprintf(format, args...)}
}

// Size formats a limit in bytes.
func Size(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// File reports whether a file of a size may be read, before it is.
func (b *Budget) File(name string, size int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files++
	b.bytes += size
	switch {
	case size > b.limits.FileBytes:
		return exceeded(name, "the file is larger than %s", Size(b.limits.FileBytes))
	case b.files > b.limits.Files:
		return exceeded(name, "more than %d files are read", b.limits.Files)
	case b.bytes > b.limits.Bytes:
		return exceeded(name, "more than %s are read", Size(b.limits.Bytes))
	}
	return nil
}

// Entry reports whether an archive may have one more entry.
func (b *Budget) Entry(name string) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries++
	b.folders += int64(strings.Count(name, "/"))
	switch {
	case len(name) > maxName:
		return exceeded(name[:64]+"…", "the name of the entry is longer than %d bytes", maxName)
	case b.entries > b.limits.Entries:
		return exceeded("", "the archive has more than %d entries", b.limits.Entries)
	case b.folders > 10*b.limits.Entries:
		return exceeded("", "the paths of the entries in the archive have more than %d elements", 10*b.limits.Entries)
	}
	return nil
}

// Add counts objects and their YAML nodes towards the result of a build.
func (b *Budget) Add(name string, objects, nodes int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.objects += objects
	b.nodes += nodes
	switch {
	case b.objects > b.limits.Objects:
		return exceeded(name, "the build has more than %d objects", b.limits.Objects)
	case b.nodes > b.limits.Nodes:
		return exceeded(name, "the objects of the build have more than %d YAML nodes", b.limits.Nodes)
	}
	return nil
}

// Write counts bytes that a chart or kustomize has returned.
func (b *Budget) Write(name string, n int64) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written += n; b.written > b.limits.Output {
		return exceeded(name, "the output is larger than %s", Size(b.limits.Output))
	}
	return nil
}

// Limits returns the limits, the default ones for a nil Budget.
func (b *Budget) Limits() Limits {
	if b == nil {
		return Default()
	}
	return b.limits
}
