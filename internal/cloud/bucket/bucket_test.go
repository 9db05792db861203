package bucket_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/cloud/bucket"
	"github.com/fluxkit/flux/internal/sandbox/bucketserver"
)

// TestEndlessList reads a bucket whose list does not end.
func TestEndlessList(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := io.WriteString(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`)
		for err == nil {
			_, err = io.WriteString(w, strings.Repeat("<Contents><Key>app.yaml</Key><Size>1</Size></Contents>", 100))
		}
	}))
	t.Cleanup(server.Close)
	_, err := bucket.Fetch(t.Context(), cloud.BucketRequest{
		Endpoint: strings.TrimPrefix(server.URL, "http://"), Insecure: true, Name: "b", Region: "us-east-1", Directory: t.TempDir(),
	})
	if err == nil || !strings.Contains(err.Error(), "8 MiB") {
		t.Errorf("error %v", err)
	}
}

// TestLargeObject reads an object that is larger than a list may be.
func TestLargeObject(t *testing.T) {
	t.Parallel()
	const size = 9 << 20
	server := httptest.NewServer(&bucketserver.Bucket{
		Name: "b", Modified: time.Now(), Objects: map[string]bucketserver.Object{"app.tgz": bucketserver.NewObject(make([]byte, size))},
	})
	t.Cleanup(server.Close)
	folder := t.TempDir()
	objects, err := bucket.Fetch(t.Context(), cloud.BucketRequest{
		Endpoint: strings.TrimPrefix(server.URL, "http://"), Insecure: true, Name: "b", Region: "us-east-1", Directory: folder,
	})
	if err != nil || len(objects) != 1 {
		t.Fatalf("%v, objects %v", err, objects)
	}
	if info, err := os.Stat(filepath.Join(folder, "0")); err != nil || info.Size() != size {
		t.Errorf("%v, the file has %d bytes", err, info.Size())
	}
}

// TestRedirect follows a redirect of the bucket to another port of its host, which must not receive the signature.
func TestRedirect(t *testing.T) {
	t.Parallel()
	given := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	_, err := bucket.Fetch(t.Context(), cloud.BucketRequest{
		Endpoint: strings.TrimPrefix(server.URL, "http://"), Insecure: true, Name: "b", Region: "us-east-1", Directory: t.TempDir(),
		AccessKey: "key", SecretKey: "hunter2",
	})
	if err == nil {
		t.Error("no error")
	}
	if got := <-given; got != "" {
		t.Errorf("the other server got %q", got)
	}
}
