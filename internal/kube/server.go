package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
)

// ServerVersion returns the version of Kubernetes.
func (c *Client) ServerVersion(ctx context.Context) (*version.Version, error) {
	body, err := answer(ctx, c.raw.Get().AbsPath("/version"))
	if err != nil {
		return nil, fmt.Errorf("asking for the version of Kubernetes: %w", err)
	}
	var answer struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	if v, err := version.ParseSemantic(answer.GitVersion); err == nil {
		return v, nil
	}
	// Some vendors' versions are no semantic ones; their numbers still count.
	v, err := version.ParseGeneric(answer.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the version of Kubernetes: %w", err)
	}
	return v, nil
}

// Supports tells whether a version is at least the one of a constraint of the
// form ">=1.33.0-0".
func Supports(v *version.Version, constraint string) (bool, error) {
	least, err := version.ParseSemantic(strings.TrimPrefix(constraint, ">="))
	if err != nil {
		return false, fmt.Errorf("reading the constraint %q: %w", constraint, err)
	}
	return v.AtLeast(least), nil
}

// answer sends a request and returns the body. Its errors are the server's own
// words, which DoRaw leaves out.
func answer(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
