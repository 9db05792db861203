package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
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

// Supports reports whether a version satisfies a constraint of the form ">=1.33.0-0".
func Supports(v *version.Version, constraint string) (bool, error) {
	least, err := version.ParseSemantic(strings.TrimPrefix(constraint, ">="))
	if err != nil {
		return false, fmt.Errorf("reading the constraint %q: %w", constraint, err)
	}
	return v.AtLeast(least), nil
}

// answer sends a request and returns the body. Its errors have the message of the server, which
// those of DoRaw do not.
func answer(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
