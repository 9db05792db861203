package redact_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/fluxkit/flux/internal/secrets/redact"
)

const canary = "canary+s3cret/value"

func TestSet(t *testing.T) {
	t.Parallel()
	var s redact.Set
	s.Add(canary, "", "abc", "worded")
	s.AddURL("https://me:urlpassword@example.com/x?ref=main&access_token=querytoken1")
	s.AddLogin("flux", "registry-pass")
	s.AddHeader(http.Header{"Authorization": {"Bearer header-token-1"}})
	s.AddHeader(http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("u:basic-pass"))}})
	s.Add("\xffbytes") // short, and not UTF-8
	s.Add("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END KEY-----\n")
	for text, want := range map[string]string{
		"token " + canary + " refused":                                             "token ***** refused",
		"got " + base64.StdEncoding.EncodeToString([]byte(canary)):                 "got *****",
		`{"a":"canary%2Bs3cret%2Fvalue"}`:                                          `{"a":"*****"}`,
		"the urlpassword, querytoken1 and ref main":                                "the *****, ***** and ref main",
		"Basic " + base64.StdEncoding.EncodeToString([]byte("flux:registry-pass")): "Basic *****",
		"header-token-1 basic-pass":                                                "***** *****",
		"key MIIEvQIBADANBgkqhkiG9w0BAQ":                                           "key *****",
		"a worded in unworded and --worded-ref":                                    "a ***** in unworded and --worded-ref",
		"got \xffbytes":                                                            "got *****",
		"abc is short":                                                             "abc is short",
		"flux is the user":                                                         "flux is the user",
	} {
		if got := s.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestWriter splits a text with a secret at every two positions.
func TestWriter(t *testing.T) {
	t.Parallel()
	var s redact.Set
	s.Add(canary, "can opener")
	const text = "a can of " + canary + " and c" + canary + canary + ", ca"
	want := strings.ReplaceAll(text, canary, redact.Mask)
	for i := range len(text) {
		for j := i; j < len(text); j++ {
			var b strings.Builder
			w := s.NewWriter(&b)
			for _, part := range []string{text[:i], text[i:j], text[j:]} {
				if n, err := w.Write([]byte(part)); err != nil || n != len(part) {
					t.Fatal(n, err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if b.String() != want {
				t.Fatalf("cut at %d and %d: %q, want %q", i, j, b.String(), want)
			}
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"token": true, "GITHUB_TOKEN": true, "access_token": true, "X-Amz-Signature": true, "password": true, "AWS_SECRET_ACCESS_KEY": true, "sig": true, "SOPS_AGE_KEY": true,
		"token-auth": false, "TOKENS": false, "key": false, "secret-ref": false, "PATH": false, "ref": false, "author": false, "SSH_AUTH_SOCK": false,
	} {
		if redact.Named(name) != want {
			t.Errorf("Named(%q) = %v", name, !want)
		}
	}
}

// FuzzText checks that no form of a secret is printed, whatever surrounds it and wherever a
// stream of it is cut.
func FuzzText(f *testing.F) {
	f.Add("https://user:", "@example.com", "", 3)
	f.Add("?token=", "&a=b", "other-secret", 20)
	f.Add("-----BEGIN PRIVATE KEY-----", "", "canary", 30)
	f.Add("canary-5a", "ry-5ac1d7e3", "canary-5ac1", 12)
	f.Fuzz(func(t *testing.T, before, after, other string, cut int) {
		var s redact.Set
		s.Add(canary, other)
		for _, form := range []string{
			canary, url.QueryEscape(canary), base64.StdEncoding.EncodeToString([]byte(canary)), base64.RawURLEncoding.EncodeToString([]byte(canary)),
		} {
			text := before + form + after
			if got := s.Text(text); strings.Contains(got, form) {
				t.Errorf("Text(%q) = %q", text, got)
			}
			var b strings.Builder
			w := s.NewWriter(&b)
			cut := min(max(cut, 0), len(text))
			for _, part := range []string{text[:cut], text[cut:]} {
				if _, err := w.Write([]byte(part)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), form) {
				t.Errorf("%q, cut at %d, is written as %q", text, cut, b.String())
			}
		}
	})
}
