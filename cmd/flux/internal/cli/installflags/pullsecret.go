package installflags

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
)

// MostCredentials is the maximum size of credentials on standard input.
const MostCredentials = 1 << 16

// PullSecret returns the Secret with the credentials for the controller images,
// or nil without credentials.
func (m *Manifests) PullSecret(in io.Reader, namespace string) (*unstructured.Unstructured, error) {
	if m.RegistryCreds == "" {
		return nil, nil // no Secret is requested
	}
	if m.options.ImagePullSecret == "" {
		return nil, errors.New("--registry-creds requires --image-pull-secret, the name of the Secret to create")
	}
	credentials := m.RegistryCreds
	if credentials == "-" {
		text, err := budget.ReadAll(in, "", "it", MostCredentials)
		if err != nil {
			return nil, fmt.Errorf("reading the registry's credentials from standard input: %w", err)
		}
		credentials = strings.TrimRight(string(text), "\r\n")
	}
	// Passwords may contain colons.
	user, password, ok := strings.Cut(credentials, ":")
	if !ok || user == "" || password == "" {
		return nil, errors.New("--registry-creds must have the form user:password")
	}
	host, _, _ := strings.Cut(m.options.Registry, "/")
	config, err := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]string{
		"username": user, "password": password,
		"auth": base64.StdEncoding.EncodeToString([]byte(credentials)),
	}}})
	if err != nil {
		return nil, fmt.Errorf("encoding the registry's credentials: %w", err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
		"metadata":   map[string]any{"name": m.options.ImagePullSecret, "namespace": namespace},
		"stringData": map[string]any{".dockerconfigjson": string(config)},
	}}, nil
}
