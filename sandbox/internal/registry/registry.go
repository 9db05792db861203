// Package registry serves an OCI registry on this machine and keeps its content on disk.
package registry

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"

	oci "github.com/google/go-containerregistry/pkg/registry"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
	"github.com/fluxkit/flux/sandbox/internal/fault"
	"github.com/fluxkit/flux/sandbox/internal/loopback"
)

// Config configures Run.
type Config struct {
	// Root is the directory with blobs, manifests and credentials. It is created if it is missing.
	Root string
	// Addr is a loopback address such as 127.0.0.1:0.
	Addr string
	// Ready is called with the chosen address once the registry listens.
	Ready func(address string)
	// Log receives one line for each request. Nil discards them.
	Log io.Writer
}

// Run serves until ctx is canceled, then closes every connection and waits for the pending requests.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	logger := log.New(cfg.Log, "registry: ", log.LstdFlags|log.LUTC|log.Lmsgprefix)
	handler, err := newHandler(cfg.Root, logger)
	if err != nil {
		return err
	}
	listener, err := loopback.Listen(ctx, cfg.Addr)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if cfg.Ready != nil {
		cfg.Ready(listener.Addr().String())
	}
	if err := loopback.Serve(ctx, listener, handler, logger); err != nil {
		return fmt.Errorf("serving the registry: %w", err)
	}
	return nil
}

func newHandler(root string, logger *log.Logger) (http.Handler, error) {
	blobs, manifests := filepath.Join(root, "blobs"), filepath.Join(root, "manifests")
	for _, folder := range []string{blobs, manifests} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("creating the registry's directory: %w", err)
		}
	}
	served := oci.New(oci.Logger(logger), oci.WithBlobHandler(oci.NewDiskBlobHandler(blobs)), oci.WithReferrersSupport(true))
	kept := &keeper{folder: manifests, next: served, log: logger}
	if err := kept.restore(); err != nil {
		return nil, err
	}
	guarded := guard{credentials: credentials.In(root), next: kept, log: logger}
	return fault.Handler(root, affected, guarded), nil
}

// affected reports whether a fault affects a request. Like registries with a rate limit, it excludes the first request of
// a client, which determines the authentication.
func affected(r *http.Request) bool { return r.URL.Path != "/v2/" && r.URL.Path != "/v2" }

// guard requires credentials if any are configured. They are read for every request, so changes take effect immediately.
type guard struct {
	credentials credentials.File
	next        http.Handler
	log         *log.Logger
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	set, err := g.credentials.Load()
	if err != nil {
		g.log.Print(err)
		reject(w, http.StatusInternalServerError, "UNKNOWN", "the registry's credentials cannot be read: see its log")
		return
	}
	access := set.Request(r)
	writes := r.Method != http.MethodGet && r.Method != http.MethodHead
	switch {
	case access == credentials.None:
		// Only Basic is offered: for Bearer, registry clients would request a token from a token service, which does not
		// exist.
		w.Header().Set("WWW-Authenticate", `Basic realm="flux-sandbox"`)
		reject(w, http.StatusUnauthorized, "UNAUTHORIZED", "a valid username and password are required")
	case writes && access < credentials.Write:
		reject(w, http.StatusForbidden, "DENIED", "these credentials may pull but not push")
	default:
		g.next.ServeHTTP(w, r)
	}
}

// reject sends an error in the format of the distribution specification. The arguments need no escaping.
func reject(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`+"\n", code, message)
}
