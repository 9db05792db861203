package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Target is which release of Helm a HelmRelease is about.
type Target struct {
	// Name and Namespace are the release's.
	Name, Namespace string
	// Storage is the namespace where Helm keeps books of it.
	Storage string
}

// TargetOf tells which release of Helm a HelmRelease is about.
func TargetOf(hr *unstructured.Unstructured) (Target, error) {
	var spec releaseSpec
	if err := convert(hr.Object["spec"], &spec); err != nil {
		return Target{}, fmt.Errorf("reading the spec of %s: %w", referenceTo(hr), err)
	}
	return spec.target(hr), nil
}

func (s *releaseSpec) target(hr *unstructured.Unstructured) Target {
	t := Target{Name: releaseName(hr, s), Namespace: s.TargetNamespace, Storage: s.StorageNamespace}
	if t.Namespace == "" {
		t.Namespace = hr.GetNamespace()
	}
	if t.Storage == "" {
		t.Storage = hr.GetNamespace()
	}
	return t
}

// releaseName is what Helm knows the release by; Helm's limit is 53 letters.
func releaseName(hr *unstructured.Unstructured, spec *releaseSpec) string {
	name := hr.GetName()
	switch {
	case spec.ReleaseName != "":
		return spec.ReleaseName
	case spec.TargetNamespace != "":
		name = spec.TargetNamespace + "-" + name
	}
	const limit, hashed = 53, 12
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:limit-hashed-1] + "-" + hex.EncodeToString(sum[:])[:hashed]
}
