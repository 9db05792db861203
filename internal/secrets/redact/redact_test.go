package redact_test

import (
	"testing"

	"github.com/fluxkit/flux/internal/secrets/redact"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, secret, want string }{
		{"cloning https://me:s3cret@example.com/org/app: 401", "", "cloning https://me:*****@example.com/org/app: 401"},
		{"cloning https://token@example.com/org/app", "", "cloning https://*****@example.com/org/app"},
		{"ssh://git@example.com/org/app refused", "", "ssh://git@example.com/org/app refused"},
		{`Get "https://u:p@h/x": EOF`, "", `Get "https://u:*****@h/x": EOF`},
		{"the password hunter2 is wrong", "hunter2", "the password ***** is wrong"},
		{"https://h/x?ref=main&access_token=abc#d", "", "https://h/x?ref=main&access_token=*****#d"},
		{`{"msg":"https://h/x?ref=main\u0026x-sig=a\u0026b=c"}`, "", `{"msg":"https://h/x?ref=main\u0026x-sig=*****"}`},
		{`{"msg":"Get \"https://h/x?token=a\": EOF"}`, "", `{"msg":"Get \"https://h/x?token=*****\": EOF"}`},
		{"https://h/x?tokens=a&design=b", "", "https://h/x?tokens=a&design=b"},
		{"nothing to hide at https://example.com/a@b", "", "nothing to hide at https://example.com/a@b"},
	} {
		if got := redact.Text(test.text, test.secret); got != test.want {
			t.Errorf("Text(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://me:s3cret@example.com/org/app": "https://example.com/org/app",
		"ssh://git@example.com/org/app":         "ssh://git@example.com/org/app",
		"http://127.0.0.1:3000/fleet.git":       "http://127.0.0.1:3000/fleet.git",
		"https://me:s3%zz@example.com/x":        "https://me:*****@example.com/x",
	} {
		if got := redact.URL(in); got != want {
			t.Errorf("URL(%q) = %q, want %q", in, got, want)
		}
	}
}
