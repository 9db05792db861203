package inventory

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/fluxkit/flux/pkg/controllers"
)

const sopsValue = "ENC[AES256_GCM,data:MXfyyQ==,iv:0hVVQ1jDkHkyUVdcA2Dp1fYYp9pB9iP6Y5uIw9kAGYs=,tag:W9HbT/Cok1ZdJpaVb7pB4Q==,type:str]"

func TestEncryptedFields(t *testing.T) {
	t.Parallel()
	document := "password: " + sopsValue + "\nsops:\n    version: 3.10.0\n"
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	object := func(kind string, data map[string]any) controllers.Object {
		return controllers.Object{"kind": kind, "data": data}
	}
	for name, c := range map[string]struct {
		object controllers.Object
		want   string
	}{
		"a document in a Secret":       {object("Secret", map[string]any{"values.yaml": encode(document), "other": encode("clear")}), "data.values.yaml"},
		"a document in a ConfigMap":    {object("ConfigMap", map[string]any{"values.yaml": document}), "data.values.yaml"},
		"a value":                      {object("Secret", map[string]any{"password": encode(sopsValue)}), "data.password"},
		"values of a release":          {controllers.Object{"kind": "HelmRelease", "spec": map[string]any{"values": map[string]any{"users": []any{map[string]any{"password": sopsValue}}}}}, "spec.values.users[0].password"},
		"dotenv":                       {object("Secret", map[string]any{"env": encode("PASSWORD=" + sopsValue + "\nsops_mac=" + sopsValue + "\n")}), "data.env"},
		"a text about it":              {object("ConfigMap", map[string]any{"howto": "encrypted values look like " + sopsValue + " in the file"}), ""},
		"a text about the metadata":    {object("ConfigMap", map[string]any{"howto": "sops: is the key, ENC[AES256_GCM,…] the value"}), ""},
		"a policy for SOPS":            {object("ConfigMap", map[string]any{".sops.yaml": "creation_rules:\n- path_regex: .*\n  age: age1xyz\n"}), ""},
		"text of a Secret, not base64": {object("Secret", map[string]any{"values": "!" + sopsValue}), ""},
		"the metadata of the object": {
			controllers.Object{"kind": "Secret", "sops": map[string]any{"mac": sopsValue}, "stringData": map[string]any{"a": "x " + sopsValue}}, "stringData.a",
		},
	} {
		if got := strings.Join(encryptedFields(c.object), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
