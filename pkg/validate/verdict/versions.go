package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// KubernetesVersions returns the Kubernetes minor versions for which the helper contains schemas,
// newest first.
func KubernetesVersions() []string { return []string{"1.36"} }

// VersionError is returned for a Kubernetes version without schemas.
type VersionError struct{ Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("no schemas for Kubernetes %q (available: %s)", e.Version, strings.Join(KubernetesVersions(), ", "))
}

// Minor returns the minor version of a version such as 1.36, v1.36.2 or 1.36.2+k3s1. The helper
// must contain its schemas.
func Minor(version string) (string, error) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 || !slices.Contains(KubernetesVersions(), parts[0]+"."+parts[1]) {
		return "", &VersionError{version}
	}
	return parts[0] + "." + parts[1], nil
}
