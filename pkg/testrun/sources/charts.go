package sources

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/sandbox/bucketserver"
	"github.com/fluxkit/flux/internal/web/loopback"
)

// chart is a packed chart.
type chart struct {
	name, version string
	metadata      map[string]any
	packed        []byte
}

func artifactLimits() *budget.Budget { return budget.New(budget.Default()) }

const chartFile = "Chart.yaml"

// chartsIn returns the charts in a directory: those in it, in its directories, and the packed ones. A file is
// a packed chart, if it has one.
func chartsIn(ctx context.Context, name string) ([]chart, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		packed, err := readFile(name)
		if err != nil {
			return nil, err
		}
		c, err := unpacked(packed)
		if c == nil || err != nil {
			return nil, err
		}
		return []chart{*c}, nil
	}
	files, err := ReadFiles(ctx, filetree.Folder(name))
	if err != nil {
		return nil, err
	}
	if files[chartFile] != nil { // the charts below are its dependencies
		c, err := pack(files, ".")
		return []chart{c}, err
	}
	var found []chart
	for _, file := range slices.Sorted(maps.Keys(files)) {
		folder, depth := path.Dir(file), strings.Count(file, "/")
		switch {
		case path.Base(file) == chartFile && depth == 1:
			c, err := pack(files, folder)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			found = append(found, c)
		case strings.HasSuffix(file, ".tgz") && depth <= 1:
			c, err := unpacked(files[file])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if c != nil {
				found = append(found, *c)
			}
		}
	}
	return found, nil
}

// describe reads Chart.yaml.
func (c *chart) describe(text []byte) error {
	if err := budget.Unmarshal(chartFile, text, &c.metadata); err != nil {
		return err
	}
	c.name, _ = c.metadata["name"].(string)
	c.version, _ = c.metadata["version"].(string)
	if c.name == "" || c.version == "" || c.name != path.Base(c.name) {
		return errors.New("the chart needs a name and a version")
	}
	return nil
}

// pack packs the chart in a directory as Helm does.
func pack(files map[string][]byte, folder string) (chart, error) {
	c := chart{}
	if err := c.describe(files[path.Join(folder, chartFile)]); err != nil {
		return c, err
	}
	own := map[string][]byte{}
	for name, content := range files {
		inside, ok := strings.CutPrefix(name, folder+"/")
		if folder == "." {
			inside, ok = name, true
		}
		if ok {
			own[path.Join(c.name, inside)] = content
		}
	}
	var err error
	c.packed, err = PackFiles(own)
	return c, err
}

// PackFiles returns files as a gzipped tar archive, which is the same for the same files.
func PackFiles(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), compressed.Close())
	return b.Bytes(), err
}

// unpacked reads a packed chart. It returns nil for another archive.
func unpacked(packed []byte) (*chart, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	limits := budget.Default()
	archive := tar.NewReader(budget.Reader(compressed, limits.Bytes, budget.TooLarge("the archive", "archive", limits.Bytes)))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Base(header.Name) != chartFile || strings.Count(path.Clean(header.Name), "/") != 1 {
			continue
		}
		text, err := budget.ReadAll(archive, header.Name, "file", limits.FileBytes)
		if err != nil {
			return nil, err
		}
		c := &chart{packed: packed}
		return c, c.describe(text)
	}
}

// localServer serves Helm repositories and buckets on the loopback address.
type localServer struct {
	server *loopback.Server

	mu sync.Mutex
	// files are those of Helm repositories, and buckets those by name.
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
		_, _ = w.Write(content) // the client sees that it is not complete
	}
}

// listen starts the server, unless it runs.
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
func (s *Server) serveCharts(ctx context.Context, name string, charts []chart) (string, error) {
	if err := s.listen(ctx); err != nil {
		return "", err
	}
	entries := map[string][]any{}
	s.local.mu.Lock()
	defer s.local.mu.Unlock()
	for _, c := range charts {
		file := c.name + "-" + c.version + ".tgz"
		sum := sha256.Sum256(c.packed)
		entry := maps.Clone(c.metadata)
		entry["urls"], entry["digest"], entry["created"] = []any{file}, hex.EncodeToString(sum[:]), s.Now().UTC().Format(time.RFC3339)
		entries[c.name] = append(entries[c.name], entry)
		s.local.files["/"+name+"/"+file] = c.packed
	}
	index, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": entries})
	s.local.files["/"+name+"/index.yaml"] = index
	return "http://" + s.local.server.Address + "/" + name, err
}
