package testsigstore

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// Repository is a TUF repository with a trusted root. It serves its files over HTTP.
type Repository struct {
	// Root is the first root.json.
	Root []byte

	mu       sync.Mutex
	files    map[string][]byte
	requests []string
}

// NewRepository returns a repository whose metadata is valid until a time.
func NewRepository(trustedRoot []byte, until time.Time) (*Repository, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	signer, err := signature.LoadSigner(key, crypto.Hash(0))
	if err != nil {
		return nil, err
	}
	public, err := metadata.KeyFromPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	root, targets, snapshot, timestamp := metadata.Root(until), metadata.Targets(until), metadata.Snapshot(until), metadata.Timestamp(until)
	for _, role := range metadata.TOP_LEVEL_ROLE_NAMES {
		if err := root.Signed.AddKey(public, role); err != nil {
			return nil, err
		}
	}
	const name = "trusted_root.json"
	if targets.Signed.Targets[name], err = metadata.TargetFile().FromBytes(name, trustedRoot, "sha256"); err != nil {
		return nil, err
	}
	r := &Repository{files: map[string][]byte{fmt.Sprintf("/targets/%x.%s", sha256.Sum256(trustedRoot), name): trustedRoot}}
	for path, file := range map[string]signable{"/1.root.json": root, "/1.targets.json": targets, "/1.snapshot.json": snapshot, "/timestamp.json": timestamp} {
		if _, err := file.Sign(signer); err != nil {
			return nil, err
		}
		if r.files[path], err = file.ToBytes(false); err != nil {
			return nil, err
		}
	}
	r.Root = r.files["/1.root.json"]
	return r, nil
}

type signable interface {
	Sign(signature.Signer) (*metadata.Signature, error)
	ToBytes(pretty bool) ([]byte, error)
}

// ServeHTTP serves the files.
func (r *Repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, request.URL.Path)
	content, ok := r.files[request.URL.Path]
	if !ok {
		http.NotFound(w, request)
		return
	}
	_, _ = w.Write(content) // the client may have disconnected
}

// Requests returns the paths of the requests since the last call.
func (r *Repository) Requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := r.requests
	r.requests = nil
	return requests
}
