package script_test

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// hides fails if a file has a part of a secret, in any of the encodings that template functions
// offer: hides SECRET FILE…
func hides(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] hides SECRET FILE…")
	}
	for _, name := range args[1:] {
		found := disclosed(ts.ReadFile(name), args[0])
		if found != "" && !neg {
			ts.Fatalf("%s has %q, a part of the secret:\n%s", name, found, ts.ReadFile(name))
		}
		if found == "" && neg {
			ts.Fatalf("%s has no part of the secret", name)
		}
	}
}

// disclosed returns a part of a secret that a text has in any encoding, or "".
func disclosed(text, secret string) string {
	text = strings.ToLower(text)
	for _, form := range forms(secret) {
		form = strings.ToLower(form)
		size := 6
		if len(form) >= 32 && strings.Trim(form, "0123456789abcdef") == "" {
			size = 10 // other hashes have the same 6 digits by chance
		}
		for at := 0; at+size <= len(form); at++ {
			if piece := form[at : at+size]; strings.Contains(text, piece) {
				return piece
			}
		}
	}
	return ""
}

func forms(secret string) []string {
	backwards := []rune(secret)
	slices.Reverse(backwards)
	rot13 := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'a' + (r-'a'+13)%26
		case r >= 'A' && r <= 'Z':
			return 'A' + (r-'A'+13)%26
		}
		return r
	}, secret)
	var all []string
	for _, plain := range []string{secret, strings.ToLower(secret), strings.ToUpper(secret), string(backwards), rot13} {
		of1, of2, of5 := sha1.Sum([]byte(plain)), sha256.Sum256([]byte(plain)), md5.Sum([]byte(plain))
		all = append(all, plain, hex.EncodeToString([]byte(plain)), hex.EncodeToString(of1[:]), hex.EncodeToString(of2[:]), hex.EncodeToString(of5[:]))
		for shift := range 3 { // base64 of a text that contains it
			encoded := base64.RawStdEncoding.EncodeToString([]byte(plain[shift:]))
			all = append(all, encoded[:len(encoded)-2])
		}
	}
	return all
}

func TestDisclosed(t *testing.T) {
	t.Parallel()
	const secret = "Zebra7Quilt9Vortex"
	for _, text := range []string{"a Zebra7", "ZEBRA7", "xetroV9", "5a6562726137", "WmVicmE3UXVpbHQ5Vm9ydGV4", "Mroen7Dhvyg"} {
		if disclosed(text, secret) == "" {
			t.Errorf("%q is not found", text)
		}
	}
	for _, text := range []string{"", "Zebra", "Quilt", "zebra-7-quilt"} {
		if found := disclosed(text, secret); found != "" {
			t.Errorf("%q is found in %q", found, text)
		}
	}
}
