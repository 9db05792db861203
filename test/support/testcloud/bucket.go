package testcloud

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/fluxkit/flux/internal/sandbox/bucketserver"
)

// S3 is the AWS host of the bucket assets, which contains one object.
const S3 = "assets.s3.eu-west-1.amazonaws.com"

// bucket serves the bucket to the identity.
func (c amazon) bucket(w http.ResponseWriter, r *http.Request) {
	if err := c.signed(r, "s3", "eu-west-1"); err != nil {
		bucketserver.Fail(w, r, http.StatusForbidden, "AccessDenied", err.Error())
		return
	}
	inPath := r.Clone(r.Context())
	inPath.URL.Path = "/assets" + r.URL.Path
	(&bucketserver.Bucket{Name: "assets", Objects: map[string]bucketserver.Object{"app.yaml": bucketserver.NewObject([]byte("kind: ConfigMap\napiVersion: v1\nmetadata: {name: app}\n"))}}).ServeHTTP(w, inPath)
}

// Bucket is a server with one bucket, for requests that are signed with its key.
type Bucket struct {
	*httptest.Server
	AccessKey, SecretKey string

	mu     sync.Mutex
	bucket bucketserver.Bucket
	reads  int
}

// StartBucket runs a server with an empty bucket.
func StartBucket(name string) *Bucket {
	b := &Bucket{AccessKey: "AKIAEXAMPLE", SecretKey: secret("bucket-key")}
	b.bucket = bucketserver.Bucket{Name: name, Objects: map[string]bucketserver.Object{}, Modified: time.Unix(0, 0)}
	b.Server = httptest.NewServer(b)
	return b
}

// Endpoint returns spec.endpoint of a Bucket.
func (b *Bucket) Endpoint() string { return strings.TrimPrefix(b.URL, "http://") }

// Put writes an object.
func (b *Bucket) Put(key, content string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bucket.Objects[key] = bucketserver.NewObject([]byte(content))
}

// Reads returns the number of objects that were read.
func (b *Bucket) Reads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads
}

// ServeHTTP implements http.Handler.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if accessKeyOf(r) != b.AccessKey {
		bucketserver.Fail(w, r, http.StatusForbidden, "AccessDenied", "the access key does not exist")
		return
	}
	if err := checkSignature(r, aws.Credentials{AccessKeyID: b.AccessKey, SecretAccessKey: b.SecretKey}, "s3", "us-east-1"); err != nil {
		bucketserver.Fail(w, r, http.StatusForbidden, "SignatureDoesNotMatch", err.Error())
		return
	}
	if strings.TrimPrefix(r.URL.Path, "/"+b.bucket.Name+"/") != "" && strings.HasPrefix(r.URL.Path, "/"+b.bucket.Name+"/") {
		b.reads++
	}
	b.bucket.ServeHTTP(w, r)
}
