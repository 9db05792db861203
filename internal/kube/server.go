package kube

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// ServerVersion returns the Kubernetes version of the server.
func (d Discovery) ServerVersion(ctx context.Context) (*version.Version, error) {
	body, err := answer(ctx, d.raw.Get().AbsPath("/version"))
	if err != nil {
		return nil, fmt.Errorf("reading the Kubernetes version: %w", err)
	}
	var answer struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("parsing the Kubernetes version: %w", err)
	}
	if v, err := version.ParseSemantic(answer.GitVersion); err == nil {
		return v, nil
	}
	// The versions of some vendors are not semantic versions.
	v, err := version.ParseGeneric(answer.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("parsing the Kubernetes version: %w", err)
	}
	return v, nil
}

// Supports reports whether a version is supported, from the oldest supported patch
// version of each minor version. It also returns the constraint that applies to
// the minor version, such as ">=1.33.0-0".
func Supports(v *version.Version, oldest []string) (constraint string, supported bool, err error) {
	for i, text := range oldest {
		// The pre-release suffix admits vendor builds such as 1.33.0-gke.1.
		least, err := version.ParseSemantic(text + "-0")
		if err != nil {
			return "", false, fmt.Errorf("parsing the supported Kubernetes version %q: %w", text, err)
		}
		if i == 0 || least.Major() == v.Major() && least.Minor() == v.Minor() {
			constraint, supported = ">="+text+"-0", v.AtLeast(least)
		}
	}
	return constraint, supported, nil
}
