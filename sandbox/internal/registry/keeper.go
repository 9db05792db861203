package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fluxkit/flux/sandbox/internal/file"
)

// maxManifest limits the size of a manifest in memory; the distribution specification recommends 4 MiB.
const maxManifest = 4 << 20

// keeper stores accepted manifests on disk and uploads them again at the next start, because the registry library
// keeps only blobs on disk.
type keeper struct {
	folder string
	next   http.Handler
	log    *log.Logger
	mutex  sync.Mutex // the order on disk must be the order in memory
}

// record is a manifest under a reference, which is a tag or a digest.
type record struct {
	Repository  string `json:"repository"`
	Reference   string `json:"reference"`
	ContentType string `json:"contentType"`
	Manifest    []byte `json:"manifest"`
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	repository, reference, ok := parseManifestPath(r.URL.Path)
	switch {
	case ok && r.Method == http.MethodPut:
		k.put(w, r, record{Repository: repository, Reference: reference, ContentType: r.Header.Get("Content-Type")})
	case ok && r.Method == http.MethodDelete:
		k.remove(w, r, record{Repository: repository, Reference: reference})
	default:
		k.next.ServeHTTP(w, r)
	}
}

func parseManifestPath(path string) (repository, reference string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return "", "", false
	}
	at := strings.LastIndex(rest, "/manifests/")
	if at <= 0 {
		return "", "", false
	}
	repository, reference = rest[:at], rest[at+len("/manifests/"):]
	return repository, reference, reference != "" && !strings.Contains(reference, "/")
}

func (k *keeper) put(w http.ResponseWriter, r *http.Request, kept record) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		reject(w, http.StatusRequestEntityTooLarge, "SIZE_INVALID", "the manifest cannot be read or is larger than 4 MiB")
		return
	}
	kept.Manifest = body
	r.Body = io.NopCloser(bytes.NewReader(body))

	k.mutex.Lock()
	defer k.mutex.Unlock()
	response := newResponse()
	k.next.ServeHTTP(response, r)
	if response.status == http.StatusCreated {
		if err := k.keep(kept); err != nil {
			k.log.Print(err)
			reject(w, http.StatusInternalServerError, "UNKNOWN", "the manifest cannot be stored: see the registry's log")
			return
		}
	}
	response.send(w)
}

// keep also stores the manifest under its digest, where it remains when the tag is moved.
func (k *keeper) keep(tagged record) error {
	sum := sha256.Sum256(tagged.Manifest)
	plain := tagged
	plain.Reference = "sha256:" + hex.EncodeToString(sum[:])
	for _, r := range []record{plain, tagged} {
		if err := k.write(r); err != nil {
			return fmt.Errorf("storing manifest %s of %s: %w", r.Reference, r.Repository, err)
		}
	}
	return nil
}

func (k *keeper) write(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return file.Replace(k.file(r), data, 0o600)
}

// file returns a path derived from a digest, because repository names and tags are not safe file names.
func (k *keeper) file(r record) string {
	sum := sha256.Sum256([]byte(r.Repository + "\n" + r.Reference))
	return filepath.Join(k.folder, hex.EncodeToString(sum[:])+".json")
}

func (k *keeper) remove(w http.ResponseWriter, r *http.Request, gone record) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	response := newResponse()
	k.next.ServeHTTP(response, r)
	if response.status == http.StatusAccepted {
		if err := os.Remove(k.file(gone)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			k.log.Printf("removing manifest %s of %s: %v", gone.Reference, gone.Repository, err)
		}
	}
	response.send(w)
}

// restore uploads all stored manifests again. An index is only accepted after its manifests, so restore repeats until
// nothing changes.
func (k *keeper) restore() error {
	pending, err := k.records()
	if err != nil {
		return err
	}
	for len(pending) > 0 {
		var refused []record
		for _, r := range pending {
			if !k.replay(r) {
				refused = append(refused, r)
			}
		}
		if len(refused) == len(pending) {
			k.log.Printf("%d indexes refer to deleted manifests and are not served", len(refused))
			return nil
		}
		pending = refused
	}
	return nil
}

func (k *keeper) records() ([]record, error) {
	files, err := filepath.Glob(filepath.Join(k.folder, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("listing stored manifests: %w", err)
	}
	records := make([]record, 0, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading stored manifest: %w", err)
		}
		var r record
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("reading stored manifest %s: %w", file, err)
		}
		records = append(records, r)
	}
	return records, nil
}

func (k *keeper) replay(kept record) bool {
	path := "/v2/" + kept.Repository + "/manifests/" + kept.Reference
	request, err := http.NewRequest(http.MethodPut, path, bytes.NewReader(kept.Manifest))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", kept.ContentType)
	response := newResponse()
	k.next.ServeHTTP(response, request)
	return response.status == http.StatusCreated
}

// response buffers a response until the manifest is stored.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newResponse() *response { return &response{header: http.Header{}, status: http.StatusOK} }

// Header implements http.ResponseWriter.
func (r *response) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *response) Write(data []byte) (int, error) { return r.body.Write(data) }

func (r *response) send(w http.ResponseWriter) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes())
}
