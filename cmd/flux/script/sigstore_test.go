package script_test

import (
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/internal/sandbox/programs"
	"github.com/fluxkit/flux/test/support/testsigstore"
)

// sigstoreKey is the key of a script's Sigstore.
type sigstoreKey struct{}

type sigstoreHolder struct{ *testsigstore.Sigstore }

// useSigstore signs files like the release workflow of flux:
//
//	sigstore root FILE             writes the trusted root to FILE
//	sigstore sign VERSION FILE...  signs the checksums of a version, and writes FILE.sigstore.json
func useSigstore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sigstore root FILE | sign VERSION FILE...")
	}
	h := ts.Value(sigstoreKey{}).(*sigstoreHolder)
	if h.Sigstore == nil {
		var err error
		h.Sigstore, err = testsigstore.New(time.Now().Add(time.Hour))
		ts.Check(err)
	}
	switch {
	case args[0] == "root" && len(args) == 2:
		trusted, err := h.TrustedRoot()
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), trusted, 0o600))
	case args[0] == "sign" && len(args) > 2:
		for _, file := range args[2:] {
			bundle, err := h.Sign([]byte(ts.ReadFile(file)), testsigstore.Signature{Identity: programs.Signer(strings.TrimPrefix(args[1], "v"))})
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(file)+".sigstore.json", bundle, 0o600))
		}
	default:
		ts.Fatalf("unknown command sigstore %s", strings.Join(args, " "))
	}
}
