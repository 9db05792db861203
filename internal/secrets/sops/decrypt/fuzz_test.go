package decrypt_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/secrets/sops"
	"github.com/fluxkit/flux/internal/secrets/sops/decrypt"
	"github.com/fluxkit/flux/test/support/testsops"
)

// sealedFor encrypts values and decrypts documents with one age key, in this process.
type sealedFor struct {
	*testsops.Sealer
	decrypts func(context.Context, sops.Request) (sops.Response, error)
}

func (s sealedFor) yaml(t *testing.T, body string) string {
	t.Helper()
	document, err := s.YAML(body)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func (s sealedFor) decrypt(t *testing.T, document, format string) ([]byte, error) {
	t.Helper()
	result, err := s.decrypts(t.Context(), sops.Request{Document: []byte(document), Format: format, Keys: sops.Keys{Age: []string{s.Identity.String()}}})
	return result.Clear, err
}

// FuzzDecrypt encrypts a value and decrypts it in each format. What is not the document that was
// encrypted is refused, and no part of the value is in the error.
func FuzzDecrypt(f *testing.F) {
	for _, clear := range []string{"hunter2-canary", "two\nlines\n", " a: b # c", "\x1b[2J", "", "null", "- x", "|\n  x", "\t\n x\n", "---\n", "\u0085\u2028", "%x", "trailing \n\n\n", "\r\n", "*a", "!!int 5"} {
		f.Add(clear, "password", "kind: Secret\n")
	}
	f.Add("0", "n", "0")
	f.Add("x", "a: b", "sops: 1\nkind: &a [*a]\n")
	f.Add("x", "sops", "")
	sealer, err := testsops.New()
	if err != nil {
		f.Fatal(err)
	}
	s := sealedFor{sealer, decrypt.New(func(string) string { return "" })}
	f.Fuzz(func(t *testing.T, clear, name, rest string) {
		for _, format := range []string{"yaml", "json", "binary", "dotenv"} {
			document := s.yaml(t, rest)
			if text, err := s.decrypt(t, document, format); err == nil && len(text) > 10*len(document) {
				t.Errorf("%q is decrypted to %d bytes as %s", rest, len(text), format)
			}
		}
		if !utf8.ValidString(clear) || clear == "" || !plainName(name) { // SOPS does not encrypt empty values
			return
		}
		sealed, err := s.Value("str", clear, "data:"+name+":")
		if err != nil {
			t.Fatal(err)
		}
		document := s.yaml(t, "data:\n  \""+name+"\": "+sealed+"\n") // n alone is a boolean of YAML 1.1
		object, err := kubeyaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.decrypt(t, string(object), "json")
		var got struct{ Data map[string]string }
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got.Data[name] != clear {
			t.Errorf("as JSON: %q is decrypted as %q: %v", clear, text, err)
		}
		text, err = s.decrypt(t, document, "yaml")
		got.Data = nil
		if err == nil {
			err = yamlv3.Unmarshal(text, &got)
		}
		if written(clear) && (err != nil || got.Data[name] != clear) {
			t.Errorf("as YAML: %q is decrypted as %q, which is %q: %v", clear, text, got.Data[name], err)
		}
		moved := strings.Replace(document, "  \""+name+"\":", "  other-"+name+":", 1)
		if text, err := s.decrypt(t, moved, "yaml"); err == nil || len(clear) > 8 && strings.Contains(err.Error(), clear) {
			t.Errorf("a moved value is decrypted as %q: %v", text, err)
		}
	})
}

// written reports whether the YAML library, which SOPS encodes with, too, reads a text as it has
// written it: not one that begins with a tab and has several lines.
func written(text string) bool {
	encoded, err := yamlv3.Marshal(map[string]string{"text": text})
	var got map[string]string
	return err == nil && yamlv3.Unmarshal(encoded, &got) == nil && got["text"] == text
}

// plainName reports whether YAML takes a name for a text as it is.
func plainName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxz-") == "" && strings.Trim(name, "-") == name && name != "null" && name != "true" && name != "false" && name != "on" && name != "off" && name != "no"
}
