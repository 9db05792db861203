package sops_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/fluxkit/flux/internal/sops/sopstest"
)

// FuzzDecrypt encrypts a value and decrypts it in each format. What is not the document that was
// encrypted is refused, and no part of the value is in the error.
func FuzzDecrypt(f *testing.F) {
	for _, clear := range []string{"hunter2-canary", "two\nlines\n", " a: b # c", "\x1b[2J", "", "null", "- x", "|\n  x", "\t\n x\n", "---\n", "\u0085\u2028", "%x", "trailing \n\n\n", "\r\n", "*a", "!!int 5"} {
		f.Add(clear, "password", "kind: Secret\n")
	}
	f.Add("x", "a: b", "sops: 1\nkind: &a [*a]\n")
	f.Add("x", "sops", "")
	sealer, err := sopstest.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, clear, name, rest string) {
		s := sealerOf(t, sealer)
		for _, format := range []string{"yaml", "json", "binary", "dotenv"} {
			document := s.yaml(rest)
			if text, err := s.decrypter().Decrypt(t.Context(), []byte(document), format); err == nil && len(text) > 10*len(document) {
				t.Errorf("%q is decrypted to %d bytes as %s", rest, len(text), format)
			}
		}
		if !utf8.ValidString(clear) || !plainName(name) {
			return
		}
		sealed := s.value("str", clear, "data:"+name+":")
		document := s.yaml("data:\n  " + name + ": " + sealed + "\n")
		text, err := s.decrypter().Decrypt(t.Context(), []byte(document), "json")
		var got struct{ Data map[string]string }
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || got.Data[name] != clear {
			t.Errorf("as JSON: %q is decrypted as %q: %v", clear, text, err)
		}
		text, err = s.decrypter().Decrypt(t.Context(), []byte(document), "yaml")
		got.Data = nil
		if err == nil {
			err = yaml.Unmarshal(text, &got)
		}
		if written(clear) && (err != nil || got.Data[name] != clear) {
			t.Errorf("as YAML: %q is decrypted as %q, which is %q: %v", clear, text, got.Data[name], err)
		}
		moved := strings.Replace(document, "  "+name+":", "  other-"+name+":", 1)
		if text, err := s.decrypter().Decrypt(t.Context(), []byte(moved), "yaml"); err == nil || len(clear) > 8 && strings.Contains(err.Error(), clear) {
			t.Errorf("a moved value is decrypted as %q: %v", text, err)
		}
	})
}

// written reports whether the YAML library, which SOPS encodes with, too, reads a text as it has
// written it: not one that begins with a tab and has several lines.
func written(text string) bool {
	encoded, err := yaml.Marshal(map[string]string{"text": text})
	var got map[string]string
	return err == nil && yaml.Unmarshal(encoded, &got) == nil && got["text"] == text
}

func sealerOf(t *testing.T, s *sopstest.Sealer) sealer {
	t.Helper()
	return sealer{s, t}
}

// plainName reports whether YAML takes a name for a text as it is.
func plainName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxz-") == "" && strings.Trim(name, "-") == name && name != "null" && name != "true" && name != "false" && name != "on" && name != "off" && name != "no"
}
