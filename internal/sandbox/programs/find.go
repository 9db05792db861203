package programs

import (
	"os/exec"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
)

// Find returns the path of flux-sandbox for a version of flux. It searches the directory of flux, the
// sandbox that 'flux sandbox pull' has downloaded for this version, and PATH. PATH is included
// because, unlike the helper program, users also run flux-sandbox directly.
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
