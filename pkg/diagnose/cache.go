package diagnose

import "sync"

// cache reads each value once, also if it is requested in parallel: many root
// causes may need the same pods, events or artifact. An error is kept as well.
type cache[K comparable, V any] struct {
	mu   sync.Mutex
	read map[K]func() (V, error)
}

// get returns the value of a key, which read returns at the first request.
func (c *cache[K, V]) get(key K, read func() (V, error)) (V, error) {
	c.mu.Lock()
	if c.read == nil {
		c.read = map[K]func() (V, error){}
	}
	once, known := c.read[key]
	if !known {
		once = sync.OnceValues(read)
		c.read[key] = once
	}
	c.mu.Unlock()
	return once()
}
