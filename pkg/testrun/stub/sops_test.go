package stub

import (
	"regexp"
	"strings"
	"testing"
)

// value returns what SOPS writes for a value of a type.
func value(kind string) string {
	return "ENC[AES256_GCM,data:Zm9v,iv:YmFy,tag:YmF6,type:" + kind + "]"
}

// TestStubbed checks that values of SOPS are replaced by values of their types, and nothing else is.
func TestStubbed(t *testing.T) {
	t.Parallel()
	metadata := "sops:\n    age:\n        - recipient: age1x\n          enc: |\n            -----BEGIN AGE ENCRYPTED FILE-----\n    mac: " + value("str") + "\n"
	files := map[string]string{
		"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n    name: app\ndata:\n    token: " + value("str") + "\nstringData:\n    user: " + value("str") +
			"\n" + metadata + "---\nkind: ConfigMap\ndata:\n    a: " + value("str") + "\n",
		"values.yaml": "replicas: " + value("int") + "\non: " + value("bool") + "\n# " + value("comment") + "\n" + metadata,
		"app.env":     "PASSWORD=" + value("str") + "\nCOLOR=blue\nsops_mac=" + value("str") + "\nsops_version=3.9.0\n",
		"app.json":    `{"a":{"b":["` + value("str") + `","clear"]},"n":"` + value("int") + `","sops":{"mac":"` + value("str") + `"}}`,
		"secret.json": `{"kind":"Secret","data":{"token":"` + value("str") + `"},"sops":{"mac":"x"}}`,
		// Near misses: the text of a value in a document without metadata, and metadata without values.
		"readme.md":  "Values look like ENC[AES256_GCM,data:…]\n",
		"plain.yaml": "sops:\n    version: 3\nkey: value\n",
		"other.json": `{"a":"` + value("str") + `"}`,
	}
	want := map[string]string{
		"secret.yaml": `^apiVersion: v1\nkind: Secret\nmetadata:\n    name: app\ndata:\n    token: ZmFrZS[A-Za-z0-9+/]+=*\nstringData:\n    user: fake-[0-9a-f]+\n---\nkind: ConfigMap\ndata:\n    a: ENC\[.*\]\n$`,
		"values.yaml": `^replicas: 1\non: true\n# fake-[0-9a-f]+\n$`,
		"app.env":     `^PASSWORD=fake-[0-9a-f]+\nCOLOR=blue\n$`,
		"app.json":    `^\{\s+"a": \{\s+"b": \[\s+"fake-[0-9a-f]+",\s+"clear"\s+\]\s+\},\s+"n": 1\s+\}$`,
		"secret.json": `"token": "ZmFrZS`,
		"readme.md":   `^Values look like ENC\[AES256_GCM,data:…\]\n$`,
		"plain.yaml":  `^sops:\n    version: 3\nkey: value\n$`,
		"other.json":  `^\{"a":"ENC\[`,
	}
	content := map[string][]byte{}
	for name, text := range files {
		content[name] = []byte(text)
	}
	for name, text := range Files(content) {
		if !regexp.MustCompile(want[name]).Match(text) {
			t.Errorf("%s is now\n%s", name, text)
		}
	}
	if string(content["app.env"]) != files["app.env"] {
		t.Error("the original has changed")
	}
	// Two runs have the same values, and other keys have others.
	if a, b := generate("Secret/apps/app", "user"), generate("Secret/apps/app", "token"); a == b || a != generate("Secret/apps/app", "user") || !strings.HasPrefix(a, "fake-") {
		t.Errorf("stubs %q and %q", a, b)
	}
}
