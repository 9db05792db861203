package controllers

import (
	"crypto/sha256"
	"encoding/hex"
)

// ReleaseName returns the default name of the Helm release of a HelmRelease, as
// documented for spec.releaseName. Helm limits names to 53 characters: a longer
// name is truncated and ends with a hash.
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
