package programs

import (
	"os/exec"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
)

// Find returns the path of flux-sandbox for a version of flux: in the directory of flux, as downloaded
// by 'flux sandbox pull' for this version, or on PATH. Unlike the helper program, users run it
// directly.
func Find(version string) (string, error) {
	path, err := helper.Find(helper.Sandbox)
	if err == nil {
		return path, nil
	}
	if store, err := Open(); err == nil {
		if path := store.Find(version); path != "" {
			return path, nil
		}
	}
	if path, err = exec.LookPath(helper.Sandbox); err == nil {
		return path, nil
	}
	remedy := "download it with 'flux sandbox pull', or build it in a clone with 'make sandbox controllers'"
	if !IsRelease(version) {
		remedy = "build it with 'make sandbox controllers', or download a release with 'flux sandbox pull --version VERSION'"
	}
	return "", hint.Errorf(remedy, "%s not found in the directory of flux, in the downloaded sandboxes or in PATH", helper.Sandbox)
}
