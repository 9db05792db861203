package app

import (
	"fmt"
	"os"

	"github.com/fluxkit/flux/internal/cachedir"
	"github.com/fluxkit/flux/internal/helper"
)

// renderingsMax is the maximum size of the rendering cache.
const renderingsMax = 256 << 20

// Renderings returns the cache for kustomize and Helm output, or nil without a cache directory.
func Renderings(a *App) *cachedir.Entries {
	dir, err := cachedir.User("renderings")
	version, programErr := programs(a)
	if err != nil || programErr != nil {
		return nil
	}
	return helper.Shared(a.Helpers, "renderings", func() *cachedir.Entries {
		return &cachedir.Entries{Dir: dir, Version: version, Most: renderingsMax, Now: a.Now}
	})
}

// programs returns a cache key that identifies the flux and flux-helper binaries. Development builds all have
// the same version.
func programs(a *App) (string, error) {
	text := fmt.Sprintf("%+v", a.Build)
	self, err := helper.Self()
	if err != nil {
		return "", err
	}
	beside, err := a.Helpers.Program()
	if err != nil {
		return "", err
	}
	for _, path := range []string{self, beside} {
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		if text += fmt.Sprintf(" %d", info.Size()); a.Build.Version == DevVersion {
			text += info.ModTime().String()
		}
	}
	return text, nil
}
