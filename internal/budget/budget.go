// Package budget limits the work that input from repositories, charts, registries and clusters can cause. A Budget
// applies to a build or to the extraction of an archive. Input that exceeds a limit is rejected before it is loaded
// into memory.
package budget

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits contains the limits of a Budget.
type Limits struct {
	// Bytes and Files limit the total that is read or extracted. A file that is
	// read twice counts twice.
	Bytes int64
	Files int64
	// FileBytes limits a file or an entry of an archive.
	FileBytes int64
	// Entries limits the number of archive entries of all types.
	Entries int64
	// Objects limits the number of objects in a build.
	Objects int64
	// Nodes limits the YAML nodes of the objects.
	Nodes int64
	// Output limits the bytes that charts and kustomize return.
	Output int64
	// Stored limits the compressed size of an archive.
	Stored int64
}

// Default returns the limits of a build. They are about ten times the needs of the largest manifest repositories, and
// keep the memory of a command below 1 GiB.
func Default() Limits {
	return Limits{
		Bytes: 256 << 20, Files: 200_000, FileBytes: 32 << 20, Entries: 100_000,
		Objects: 100_000, Nodes: 4_000_000, Output: 256 << 20, Stored: 128 << 20,
	}
}

// Unpacking returns the limits of an archive that is extracted to disk and never held in memory as a whole.
func Unpacking() Limits {
	return Limits{Bytes: 1 << 30, Files: 200_000, FileBytes: 1 << 30, Entries: 100_000}
}

// TreeFile limits a file of a repository that is read as a whole, such as a packed chart. A build has
// its own limits.
const TreeFile = 128 << 20

// TreeKinds limits the kinds in a tree, each of which requires a request. TreeLists limits the namespaces in which
// each kind is listed. TreeDepth limits the depth of the tree, since each level is indented further.
const (
	TreeKinds = 2000
	TreeLists = 200_000
	TreeDepth = 100
)

// maxName is the maximum length of an entry name, as in file systems.
const maxName = 4096

// HelperMemory is the memory limit of the helper process, which runs kustomize
// and Helm.
const HelperMemory = 512 << 20

// HelperData is the limit at which the kernel stops the helper process if it
// allocates faster than HelperMemory is checked.
const HelperData = 896 << 20

// HelperOutput is the maximum size of the output of a job in the helper process, such as a build or a
// rendered chart.
const HelperOutput = 64 << 20

// HelperGrace is the time that the helper process has to exit before it is killed.
const HelperGrace = 200 * time.Millisecond

// Budget limits the work of a build or of extracting an archive. Its methods
// are safe for concurrent use. A nil Budget has no limits.
type Budget struct {
	limits                                                      Limits
	mu                                                          sync.Mutex
	bytes, files, entries, directories, objects, nodes, written int64
}

// New returns an unused Budget.
func New(limits Limits) *Budget { return &Budget{limits: limits} }

// ExceededError is returned for input that exceeds a limit.
type ExceededError struct {
	// Name is the file, archive or object that exceeds the limit.
	Name string
	// Fact describes the exceeded limit, such as "the archive has more than 1000 entries".
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

// File counts a file of the given size and returns an error if a limit is exceeded.
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

// Entry counts an entry of an archive and returns an error if a limit is exceeded.
func (b *Budget) Entry(name string) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries++
	b.directories += int64(strings.Count(name, "/"))
	switch {
	case len(name) > maxName:
		return exceeded(name[:64]+"…", "the name of the entry is longer than %d bytes", maxName)
	case b.entries > b.limits.Entries:
		return exceeded("", "the archive has more than %d entries", b.limits.Entries)
	case b.directories > 10*b.limits.Entries:
		return exceeded("", "the paths in the archive have more than %d elements in total", 10*b.limits.Entries)
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

// Write counts bytes that a chart or kustomize returns.
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

// Limits returns the limits, or the default limits of a nil Budget.
func (b *Budget) Limits() Limits {
	if b == nil {
		return Default()
	}
	return b.limits
}
