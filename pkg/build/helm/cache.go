package helm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fluxkit/flux/internal/cachedir"
)

func digestOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

// cached returns a chart by its digest, or nil if it is not in the cache or its content does not
// match the digest.
func (r *Renderer) cached(digest string) []byte {
	if _, err := hex.DecodeString(digest); r.Cache == "" || digest == "" || err != nil {
		return nil
	}
	packed, err := os.ReadFile(filepath.Join(r.Cache, digest+".tgz"))
	if err != nil || digestOf(packed) != digest {
		return nil
	}
	return packed
}

// keep writes a chart to the cache.
func (r *Renderer) keep(packed []byte) error {
	if r.Cache == "" {
		return nil
	}
	if err := cachedir.Dir(r.Cache).Write(digestOf(packed)+".tgz", packed); err != nil {
		return fmt.Errorf("writing to the chart cache: %w", err)
	}
	return nil
}
