package placeholder

import (
	"encoding/base64"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPlaceholder replaces each letter and digit by another, and keeps the shape.
func TestPlaceholder(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"hunter2", "8080", "deadbeef01234567", "Zebra7Quilt9Vortex", "postgres://user:word@db:5432/x", "p$ss!word", "ümläut", "a",
		"line one\nline two\n", "-----BEGIN KEY-----\nabcd\n-----END KEY-----\n",
	} {
		got := Of(secret)
		if got != Of(secret) {
			t.Errorf("%q has two placeholders", secret)
		}
		if len([]rune(got)) != len([]rune(secret)) {
			t.Errorf("%q: %q has another length", secret, got)
		}
		other := []rune(got)
		for i, r := range []rune(secret) {
			if strings.ContainsRune(strings.Join(classes, ""), r) && other[i] == r && !strings.Contains(secret, "-----") {
				t.Errorf("%q: %q has the same character at %d", secret, got, i)
			}
		}
	}
	if got := Of("8080"); got[0] == '0' {
		t.Errorf("%q begins with 0", got)
	}
	for _, word := range []string{"", "true", "no", "null"} {
		if Of(word) != word {
			t.Errorf("%q is replaced", word)
		}
	}
	decoded, err := base64.StdEncoding.DecodeString(Of(base64.StdEncoding.EncodeToString([]byte("user: hunter2"))))
	if err != nil || !strings.HasPrefix(string(decoded), "user: ") {
		t.Errorf("%q, %v", decoded, err)
	}
}

// TestPlaceholderDocument keeps keys, types and the values that are not encrypted.
func TestPlaceholderDocument(t *testing.T) {
	t.Parallel()
	sealed := "open: public\nword: ENC[1]\nlist: [{port: 'ENC[2]', 'on': 'ENC[3]'}]\n"
	var got struct {
		Open, Word string
		List       []struct {
			Port int
			On   bool
		}
	}
	text := Document([]byte(sealed), []byte("open: public\nword: hunter2\nlist: [{port: 8080, \"on\": true}]\n"), "yaml")
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Open != "public" || got.Word == "hunter2" || got.Word == "" || got.List[0].Port == 8080 || got.List[0].Port == 0 || !got.List[0].On {
		t.Errorf("%s", text)
	}
	text = Document([]byte("OPEN=public\nWORD=ENC[1]\n"), []byte("OPEN=public\nWORD=hunter2\n"), "dotenv")
	if !strings.HasPrefix(string(text), "OPEN=public\nWORD=") || strings.Contains(string(text), "hunter2") {
		t.Errorf("%s", text)
	}
}
