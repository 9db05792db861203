package script_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/test/support/testsops"
)

var unsealed = regexp.MustCompile(`(?m)^  ([a-z]+): SEAL (.*)$`)

// vaultToken is the token that the Vault of a script accepts.
const vaultToken = "hvs.script"

// seal encrypts the values "SEAL text" below stringData of files as SOPS does. It writes the age
// key that decrypts them, or with -pgp the OpenPGP key: seal [-pgp] KEYFILE FILE…
// With -vault it starts a Vault that decrypts them, with its address in $VAULT and a line for each
// request in the file of requests: seal -vault REQUESTS FILE…
func seal(ts *testscript.TestScript, neg bool, args []string) {
	kind := "-age"
	if len(args) > 0 && args[0][0] == '-' {
		kind, args = args[0], args[1:]
	}
	if neg || len(args) < 2 {
		ts.Fatalf("usage: seal [-pgp|-vault] KEYFILE FILE…")
	}
	var s *testsops.Sealer
	var private string
	var err error
	switch kind {
	case "-age":
		if s, err = testsops.New(); err == nil {
			private = s.Identity.String() + "\n"
		}
	case "-pgp":
		s, private, err = testsops.NewPGP()
	case "-vault":
		s, err = startVault(ts, ts.MkAbs(args[0]))
	default:
		ts.Fatalf("unknown kind of key %s", kind)
	}
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(private), 0o600))
	for _, name := range args[1:] {
		body := unsealed.ReplaceAllStringFunc(ts.ReadFile(name), func(line string) string {
			m := unsealed.FindStringSubmatch(line)
			value, err := s.Value("str", m[2], "stringData:"+m[1]+":")
			ts.Check(err)
			return "  " + m[1] + ": " + value
		})
		document, err := s.YAML(body)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(document), 0o600))
	}
}

// startVault starts a server with the transit engine of a Vault until the script ends.
func startVault(ts *testscript.TestScript, requests string) (*testsops.Sealer, error) {
	const ciphertext = "vault:v1:sealed"
	var s *testsops.Sealer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get("X-Vault-Token")
		file, err := os.OpenFile(requests, os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = fmt.Fprintln(file, r.Method, r.URL.Path, token)
			err = file.Close()
		}
		if err != nil || token != vaultToken {
			http.Error(w, `{"errors":["permission denied"]}`, http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"data":{"plaintext":%q}}`, base64.StdEncoding.EncodeToString(s.DataKey))
	}))
	ts.Defer(server.Close)
	ts.Setenv("VAULT", server.URL)
	var err error
	s, err = testsops.NewVault(server.URL, ciphertext)
	return s, err
}
