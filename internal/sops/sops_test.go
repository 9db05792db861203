package sops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/sops"
	"github.com/fluxkit/flux/internal/sops/sopstest"
)

// sealer is one that fails the test.
type sealer struct {
	*sopstest.Sealer
	t *testing.T
}

func newSealer(t *testing.T) sealer {
	t.Helper()
	s, err := sopstest.New()
	if err != nil {
		t.Fatal(err)
	}
	return sealer{s, t}
}

func (s sealer) must(text string, err error) string {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

func (s sealer) value(typ, clear, place string) string {
	s.t.Helper()
	return s.must(s.Value(typ, clear, place))
}

func (s sealer) sealedKey() string {
	s.t.Helper()
	return s.must(s.DataKey())
}

func (s sealer) yaml(body string) string {
	s.t.Helper()
	return s.must(s.YAML(body))
}

func (s sealer) decrypter() *sops.Decrypter {
	return &sops.Decrypter{Identities: func(context.Context) ([]age.Identity, error) {
		return sops.Identities("# created by hand\n" + s.Identity.String() + "\n")
	}}
}

func TestDecryptObject(t *testing.T) {
	t.Parallel()
	s := newSealer(t)
	document := s.yaml(fmt.Sprintf(`kind: Secret
data:
  count: %s
  on: %s
  list:
  - %s
  plain: stays
  text: %s
`, s.value("int", "5", "data:count:"), s.value("bool", "True", "data:on:"), s.value("str", "12", "data:list:"), s.value("str", "two\nlines\n", "data:text:")))
	got, err := s.decrypter().Decrypt(t.Context(), []byte(document), "json")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"data":{"count":5,"list":["12"],"on":true,"plain":"stays","text":"two\nlines\n"},"kind":"Secret"}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("object (-want +got):\n%s", d)
	}
	got, err = s.decrypter().Decrypt(t.Context(), []byte(document), "yaml")
	if err != nil {
		t.Fatal(err)
	}
	wantYAML := "kind: Secret\ndata:\n    count: 5\n    on: true\n    list:\n        - \"12\"\n    plain: stays\n    text: |\n        two\n        lines\n"
	if d := cmp.Diff(wantYAML, string(got)); d != "" {
		t.Errorf("file (-want +got):\n%s", d)
	}
}

func TestDecryptFiles(t *testing.T) {
	t.Parallel()
	s := newSealer(t)
	binary := s.yaml("data: " + s.value("str", "\x00any\n", "data:") + "\n")
	got, err := s.decrypter().Decrypt(t.Context(), []byte(binary), "binary")
	if err != nil || string(got) != "\x00any\n" {
		t.Errorf("binary: %q, %v", got, err)
	}
	env := "# said\nA=" + s.value("str", "1=2", "A:") + "\nB=plain\nsops_age__list_0__map_enc=" +
		strings.ReplaceAll(s.sealedKey(), "\n", `\n`) + "\nsops_version=3.9.0\n"
	got, err = s.decrypter().Decrypt(t.Context(), []byte(env), "dotenv")
	if want := "# said\nA=1=2\nB=plain\n"; err != nil || string(got) != want {
		t.Errorf("dotenv: %q, %v, want %q", got, err, want)
	}
}

func TestWithoutKey(t *testing.T) {
	t.Parallel()
	s, other := newSealer(t), newSealer(t)
	document := []byte(s.yaml("data: " + s.value("str", "secret", "data:") + "\n"))
	d := other.decrypter()
	if _, err := d.Decrypt(t.Context(), document, "json"); !errors.Is(err, sops.ErrNoKey) {
		t.Errorf("another's key: %v", err)
	}
	d.Program = func(context.Context, []byte, string) ([]byte, error) { return []byte("by the program"), nil }
	if got, err := d.Decrypt(t.Context(), document, "json"); string(got) != "by the program" || err != nil {
		t.Errorf("the program was not called: %q, %v", got, err)
	}
}

func TestMovedValue(t *testing.T) {
	t.Parallel()
	s := newSealer(t)
	document := s.yaml("a: " + s.value("str", "secret", "b:") + "\n")
	_, err := s.decrypter().Decrypt(t.Context(), []byte(document), "json")
	if err == nil || !strings.Contains(err.Error(), "decrypting a: the value was changed or moved") {
		t.Errorf("a moved value was decrypted: %v", err)
	}
}

func TestMalformedKeyIsNotShown(t *testing.T) {
	t.Parallel()
	_, err := sops.Identities("AGE-SECRET-KEY-1WRONG")
	if err == nil || strings.Contains(err.Error(), "WRONG") {
		t.Errorf("error %v", err)
	}
}
