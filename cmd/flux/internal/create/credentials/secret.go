package credentials

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
)

// NewSecret returns a Secret with base64-encoded data. It does not use stringData,
// because a server-side apply would not remove keys set by an earlier stringData.
func NewSecret(c *creation.Creation, name, typ string, values map[string]string) *unstructured.Unstructured {
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	metadata := c.Metadata()
	metadata["name"] = name
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
	creation.Put(secret, "type", typ)
	return &unstructured.Unstructured{Object: secret}
}
