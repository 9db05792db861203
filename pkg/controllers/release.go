package controllers

import (
	"crypto/sha256"
	"encoding/hex"
)

// ReleaseName is what Helm knows the release of a HelmRelease by, where its
// status does not say it (spec.releaseName in its API document). Helm takes at
// most 53 letters; what is longer is cut, and ends with a hash of the whole.
func ReleaseName(hr Object) string {
	const limit, hashed = 53, 12
	name := Name(hr)
	if given := (Path{"spec.releaseName"}).String(hr); given != "" {
		return given
	}
	if namespace := (Path{"spec.targetNamespace"}).String(hr); namespace != "" {
		name = namespace + "-" + name
	}
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:limit-hashed-1] + "-" + hex.EncodeToString(sum[:])[:hashed]
}
