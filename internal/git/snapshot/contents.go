package snapshot

import (
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// contents caches small files, most of which are the same in two revisions and in the work tree.
type contents struct {
	mu     sync.Mutex
	byHash map[plumbing.Hash][]byte
	size   int
}

// of returns the content of a file, false if it is not cached.
func (c *contents) of(hash plumbing.Hash) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, ok := c.byHash[hash]
	return content, ok
}

// add caches the content of a file, if it is small.
func (c *contents) add(hash plumbing.Hash, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.byHash[hash]; known || len(content) >= cacheMax || c.size+len(content) > cacheTotal {
		return
	}
	if c.byHash == nil {
		c.byHash = map[plumbing.Hash][]byte{}
	}
	c.byHash[hash] = content
	c.size += len(content)
}
