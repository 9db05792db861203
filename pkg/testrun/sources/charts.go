package sources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/sandbox/bucketserver"
	"github.com/fluxkit/flux/internal/web/loopback"
	"github.com/fluxkit/flux/pkg/repository/mapped"
)

// localServer serves Helm repositories and buckets on the loopback address.
type localServer struct {
	server *loopback.Server

	mu sync.Mutex
	// files holds the files of Helm repositories, and buckets the buckets by name.
	files   map[string][]byte
	buckets map[string]*bucketserver.Bucket
}

// ServeHTTP implements http.Handler.
func (s *localServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	s.mu.Lock()
	content, ok := s.files[request.URL.Path]
	bucket := s.buckets[name]
	s.mu.Unlock()
	switch {
	case bucket != nil:
		bucket.ServeHTTP(w, request)
	case !ok:
		http.NotFound(w, request)
	default:
		_, _ = w.Write(content) // the client detects incomplete responses
	}
}

// listen starts the server, unless it is running.
func (s *Server) listen(ctx context.Context) error {
	if s.local != nil {
		return nil
	}
	l := &localServer{files: map[string][]byte{}, buckets: map[string]*bucketserver.Bucket{}}
	var err error
	if l.server, err = loopback.Serve(ctx, l); err != nil {
		return fmt.Errorf("listening for the requests of source-controller: %w", err)
	}
	s.local = l
	return nil
}

// serveCharts serves charts as a Helm repository, and returns its address.
func (s *Server) serveCharts(ctx context.Context, name string, charts []mapped.Chart) (string, error) {
	if err := s.listen(ctx); err != nil {
		return "", err
	}
	entries := map[string][]any{}
	s.local.mu.Lock()
	defer s.local.mu.Unlock()
	for _, c := range charts {
		file := c.Name + "-" + c.Version + ".tgz"
		sum := sha256.Sum256(c.Packed)
		entry := maps.Clone(c.Metadata)
		entry["urls"], entry["digest"], entry["created"] = []any{file}, hex.EncodeToString(sum[:]), s.Now().UTC().Format(time.RFC3339)
		entries[c.Name] = append(entries[c.Name], entry)
		s.local.files["/"+name+"/"+file] = c.Packed
	}
	index, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": entries})
	s.local.files["/"+name+"/index.yaml"] = index
	return "http://" + s.local.server.Address + "/" + name, err
}
