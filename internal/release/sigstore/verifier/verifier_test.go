package verifier

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/testing/data"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/release/sigstore"
	"github.com/fluxkit/flux/test/support/testsigstore"
)

// workflow is the identity that has to sign.
var workflow = sigstore.Identity{
	Issuer:  "https://token.actions.githubusercontent.com",
	Subject: "https://github.com/acme/app/.github/workflows/release.yaml@refs/tags/v1.0.0", Repository: "https://github.com/acme/app", Ref: "refs/tags/v1.0.0",
}

func newSigstore(t *testing.T, until time.Time) (*testsigstore.Sigstore, []byte) {
	t.Helper()
	s, err := testsigstore.New(until)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := s.TrustedRoot()
	if err != nil {
		t.Fatal(err)
	}
	return s, trusted
}

func signed(t *testing.T, s *testsigstore.Sigstore, file string, with testsigstore.Signature) []byte {
	t.Helper()
	bundle, err := s.Sign([]byte(file), with)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// run verifies a signature and returns the failure.
func run(t *testing.T, repository TUFRepository, r sigstore.Request) *sigstore.Error {
	t.Helper()
	_, err := repository.Verify(t.Context(), r)
	if err == nil {
		return nil
	}
	var failed *helper.Error
	if !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return &sigstore.Error{Step: sigstore.Step(failed.Step), Detail: failed.Text}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	const file = "0000  app.tar.gz\n"
	now := time.Now()
	good, trusted := newSigstore(t, now.Add(time.Hour))
	other, _ := newSigstore(t, now.Add(time.Hour))
	// The authority was replaced an hour ago.
	old, oldTrusted := newSigstore(t, now.Add(-time.Hour))
	by := func(change func(*sigstore.Identity)) []byte {
		identity := workflow
		change(&identity)
		return signed(t, good, file, testsigstore.Signature{Identity: identity})
	}
	with := func(s *testsigstore.Sigstore, signature testsigstore.Signature) []byte {
		signature.Identity = workflow
		return signed(t, s, file, signature)
	}
	right := with(good, testsigstore.Signature{})
	for title, c := range map[string]struct {
		file   string
		bundle []byte
		root   []byte
		step   sigstore.Step
		want   string
	}{
		"right":                      {bundle: right},
		"old, in its time":           {bundle: with(old, testsigstore.Signature{At: now.Add(-2 * time.Hour)}), root: oldTrusted},
		"old authority":              {bundle: with(old, testsigstore.Signature{}), root: oldTrusted, step: sigstore.CheckSignature, want: "failed to verify leaf certificate"},
		"file that was changed":      {file: "0001  app.tar.gz\n", bundle: right, step: sigstore.CheckSignature, want: "failed to verify signature"},
		"file with another end":      {file: file + "\n", bundle: right, step: sigstore.CheckSignature, want: "failed to verify signature"},
		"bundle of another file":     {bundle: signed(t, good, "1111  other.tar.gz\n", testsigstore.Signature{Identity: workflow}), step: sigstore.CheckSignature, want: "failed to verify signature"},
		"other repository":           {bundle: by(func(i *sigstore.Identity) { i.Subject = strings.Replace(i.Subject, "acme/app", "mallory/app", 1) }), step: sigstore.CheckIdentity, want: `got "https://github.com/mallory/app/.github/workflows/release.yaml@refs/tags/v1.0.0"`},
		"other workflow":             {bundle: by(func(i *sigstore.Identity) { i.Subject = strings.Replace(i.Subject, "release.yaml", "test.yaml", 1) }), step: sigstore.CheckIdentity, want: "test.yaml@"},
		"longer subject":             {bundle: by(func(i *sigstore.Identity) { i.Subject += "-rc.1" }), step: sigstore.CheckIdentity, want: `refs/tags/v1.0.0-rc.1"`},
		"tag of another version":     {bundle: by(func(i *sigstore.Identity) { i.Subject = strings.Replace(i.Subject, "v1.0.0", "v1.0.1", 1) }), step: sigstore.CheckIdentity, want: `refs/tags/v1.0.1"`},
		"branch":                     {bundle: by(func(i *sigstore.Identity) { i.Subject = strings.Replace(i.Subject, "tags/v1.0.0", "heads/main", 1) }), step: sigstore.CheckIdentity, want: `refs/heads/main"`},
		"other issuer":               {bundle: by(func(i *sigstore.Identity) { i.Issuer = "https://gitlab.com" }), step: sigstore.CheckIdentity, want: `got "https://gitlab.com"`},
		"issuer with another path":   {bundle: by(func(i *sigstore.Identity) { i.Issuer += "/enterprise" }), step: sigstore.CheckIdentity, want: `/enterprise"`},
		"called by other repository": {bundle: by(func(i *sigstore.Identity) { i.Repository = "https://github.com/mallory/app" }), step: sigstore.CheckIdentity, want: `got "https://github.com/mallory/app"`},
		"called for other ref":       {bundle: by(func(i *sigstore.Identity) { i.Ref = "refs/heads/main" }), step: sigstore.CheckIdentity, want: `got "refs/heads/main"`},
		"no log entry":               {bundle: with(good, testsigstore.Signature{Unlogged: true}), step: sigstore.CheckSignature, want: "not enough verified log entries"},
		"late log entry":             {bundle: with(good, testsigstore.Signature{Late: true}), step: sigstore.CheckSignature, want: "certificate"},
		"certificate not in a log":   {bundle: with(good, testsigstore.Signature{Uncertified: true}), step: sigstore.CheckSignature, want: "SCT"},
		"unknown authority and log":  {bundle: with(other, testsigstore.Signature{}), step: sigstore.CheckSignature, want: "failed to verify log inclusion"},
		"empty bundle":               {bundle: []byte("{}"), step: sigstore.ReadBundle, want: "media type"},
		"page instead of a bundle":   {bundle: []byte("<html>"), step: sigstore.ReadBundle, want: "syntax error"},
		"cut bundle":                 {bundle: right[:len(right)/2], step: sigstore.ReadBundle, want: "unexpected"},
		"statement":                  {bundle: statement(t), step: sigstore.ReadBundle, want: "the bundle contains no file signature"},
		"page instead of a root":     {bundle: right, root: []byte("<html>"), step: sigstore.ReadRoot, want: "syntax error"},
		"root without keys":          {bundle: right, root: []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), step: sigstore.CheckSignature, want: "failed to verify"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			r := sigstore.Request{File: []byte(file), Bundle: c.bundle, Identity: workflow, TrustedRoot: trusted}
			if c.file != "" {
				r.File = []byte(c.file)
			}
			if c.root != nil {
				r.TrustedRoot = c.root
			}
			failure := run(t, TUFRepository{}, r)
			switch {
			case c.step == "":
				if failure != nil {
					t.Error(failure)
				}
			case failure == nil || failure.Step != c.step || !strings.Contains(failure.Detail, c.want):
				t.Errorf("%+v, want %s: %s", failure, c.step, c.want)
			}
		})
	}
}

// statement is a bundle that GitHub Actions made, with a statement about a package.
func statement(t *testing.T) []byte {
	t.Helper()
	text, err := data.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPublicInstance checks the certificate, its log and the transparency log of a bundle that GitHub
// Actions made with the public instance of Sigstore. The file that it is about is not at hand, so that
// comparing it fails after them.
func TestPublicInstance(t *testing.T) {
	t.Parallel()
	const name = "sigstore.js@2.0.0-provenance.sigstore.json"
	step, err := check(data.Bundle(t, name), data.TrustedRoot(t, "public-good.json"), sigstore.Request{Identity: workflow})
	if step != sigstore.CheckSignature || err == nil || !strings.Contains(err.Error(), "failed to verify signature") {
		t.Errorf("%s: %v", step, err)
	}
	step, err = check(data.Bundle(t, name), data.TrustedRoot(t, "scaffolding.json"), sigstore.Request{Identity: workflow})
	if step != sigstore.CheckSignature || err == nil || !strings.Contains(err.Error(), "failed to verify log inclusion") {
		t.Errorf("with another root, %s: %v", step, err)
	}
}

func TestTUF(t *testing.T) {
	t.Parallel()
	s, trusted := newSigstore(t, time.Now().Add(time.Hour))
	_, unknown := newSigstore(t, time.Now().Add(time.Hour))
	bundle := signed(t, s, "file", testsigstore.Signature{Identity: workflow})
	serve := func(t *testing.T, root []byte, until time.Time) (*testsigstore.Repository, TUFRepository, sigstore.Request) {
		t.Helper()
		repository, err := testsigstore.NewRepository(root, until)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(repository)
		t.Cleanup(server.Close)
		return repository, TUFRepository{server.URL, repository.Root}, sigstore.Request{File: []byte("file"), Bundle: bundle, Identity: workflow, Cache: filepath.Join(t.TempDir(), "cache")}
	}
	later := time.Now().Add(time.Hour)
	t.Run("cache", func(t *testing.T) {
		t.Parallel()
		server, repository, r := serve(t, trusted, later)
		if failure := run(t, repository, r); failure != nil {
			t.Fatal(failure)
		}
		if n := len(server.Requests()); n != 5 {
			t.Errorf("%d requests, want root.json, 3 of metadata and the trusted root", n)
		}
		if failure := run(t, repository, r); failure != nil {
			t.Error(failure)
		}
		if requests := server.Requests(); len(requests) > 0 {
			t.Errorf("requests although the cache is of today: %v", requests)
		}
		copies, err := filepath.Glob(filepath.Join(r.Cache, "*", "targets", "trusted_root.json"))
		if err != nil || len(copies) != 1 {
			t.Fatalf("copies of the trusted root: %v, %v", copies, err)
		}
		if r.TrustedRoot, err = os.ReadFile(copies[0]); err != nil || !bytes.Equal(r.TrustedRoot, trusted) {
			t.Errorf("the copy differs: %v", err)
		}
		if failure := run(t, TUFRepository{}, r); failure != nil {
			t.Errorf("with the copy: %v", failure)
		}
		if failure := run(t, repository, sigstore.Request{File: []byte("file!"), Bundle: bundle, Identity: workflow, Cache: r.Cache}); failure == nil || failure.Step != sigstore.CheckSignature || failure.Given {
			t.Errorf("another file: %v", failure)
		}
	})
	t.Run("unknown authority", func(t *testing.T) {
		t.Parallel()
		_, repository, r := serve(t, unknown, later)
		if failure := run(t, repository, r); failure == nil || failure.Step != sigstore.CheckSignature {
			t.Error(failure)
		}
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		_, repository, r := serve(t, trusted, time.Now().Add(-time.Hour))
		if failure := run(t, repository, r); failure == nil || failure.Step != sigstore.ReadRoot || !strings.Contains(failure.Detail, "expired") {
			t.Error(failure)
		}
	})
	t.Run("signed by others", func(t *testing.T) {
		t.Parallel()
		_, repository, r := serve(t, trusted, later)
		other, _, _ := serve(t, trusted, later)
		repository.Root = other.Root
		if failure := run(t, repository, r); failure == nil || failure.Step != sigstore.ReadRoot || !strings.Contains(failure.Detail, "not enough signatures") {
			t.Error(failure)
		}
	})
	t.Run("no network", func(t *testing.T) {
		t.Parallel()
		_, repository, r := serve(t, trusted, later)
		repository.URL = "http://127.0.0.1:1"
		if failure := run(t, repository, r); failure == nil || failure.Step != sigstore.ReadRoot || !strings.Contains(failure.Detail, "http://127.0.0.1:1/") || !strings.Contains(failure.Detail, "connection refused") {
			t.Error(failure)
		}
	})
	t.Run("not encrypted", func(t *testing.T) {
		t.Parallel()
		_, repository, r := serve(t, trusted, later)
		repository.URL = "http://tuf.example.com"
		if failure := run(t, repository, r); failure == nil || failure.Step != sigstore.ReadRoot || !strings.Contains(failure.Detail, "not encrypted") {
			t.Error(failure)
		}
	})
	t.Run("no cache", func(t *testing.T) {
		t.Parallel()
		_, repository, r := serve(t, trusted, later)
		if err := os.WriteFile(r.Cache, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if failure := run(t, repository, r); failure == nil || failure.Step != sigstore.ReadRoot || !strings.Contains(failure.Detail, "not a directory") {
			t.Error(failure)
		}
	})
	t.Run("error of the server", func(t *testing.T) {
		t.Parallel()
		_, repository, r := serve(t, trusted, later)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
		t.Cleanup(server.Close)
		repository.URL = server.URL
		if failure := run(t, repository, r); failure == nil || failure.Step != sigstore.ReadRoot || !strings.Contains(failure.Detail, "403") {
			t.Error(failure)
		}
	})
}
