package helm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// keep writes a chart to the cache atomically.
func (r *Renderer) keep(packed []byte) (err error) {
	if r.Cache == "" {
		return nil
	}
	if err := os.MkdirAll(r.Cache, 0o700); err != nil {
		return fmt.Errorf("making the chart cache: %w", err)
	}
	file, err := os.CreateTemp(r.Cache, "fetched-*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing to the chart cache: %w", err)
	}
	_, err = file.Write(packed)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(r.Cache, digestOf(packed)+".tgz"))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing to the chart cache: %w", err), os.Remove(file.Name()))
	}
	return nil
}
