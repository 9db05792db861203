package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxkit/flux/internal/helper"
)

// BucketJob is the job that fetches the objects of a bucket, sorted by key, in the same helper process as Job.
const BucketJob helper.Call[BucketRequest, []BucketObject] = "bucket"

// KnownBucket reports whether buckets of a provider can be fetched with the S3 API.
func KnownBucket(provider string) bool {
	return provider == "" || provider == "generic" || provider == AWS
}

// BucketRequest is the input of BucketJob.
type BucketRequest struct {
	// Endpoint is the host of the server, Insecure allows connections without TLS, and Name is the bucket name.
	Endpoint string `json:"endpoint"`
	Insecure bool   `json:"insecure,omitempty"`
	Name     string `json:"name"`
	// Region is "" to request the region from the server. Prefix selects objects.
	Region string `json:"region,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	// AccessKey and SecretKey are static credentials. Identity uses the AWS identity of the environment
	// instead. Without either, requests are anonymous.
	AccessKey string `json:"accessKey,omitempty"`
	SecretKey string `json:"secretKey,omitempty"`
	Identity  bool   `json:"identity,omitempty"`
	// CA, Cert and Key are PEM-encoded, and Proxy is the URL of a proxy.
	CA    []byte `json:"ca,omitempty"`
	Cert  []byte `json:"cert,omitempty"`
	Key   []byte `json:"key,omitempty"`
	Proxy string `json:"proxy,omitempty"`
	// Known is a revision that need not be fetched again. Directory is the directory for the objects,
	// which are stored in files named by index.
	Known     string `json:"known,omitempty"`
	Directory string `json:"folder"`
}

// BucketObject is an object of a bucket.
type BucketObject struct {
	Key  string `json:"key"`
	ETag string `json:"etag"`
}

// BucketRevision returns the revision of a Bucket with these objects. It equals the revision of
// source-controller if objects contains neither ignored objects nor the ignore file.
func BucketRevision(objects []BucketObject) string {
	sum := sha256.New()
	for _, o := range slices.SortedFunc(slices.Values(objects), func(a, b BucketObject) int { return strings.Compare(a.Key, b.Key) }) {
		_, _ = fmt.Fprintf(sum, "%s %s\n", o.Key, o.ETag) // never fails
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// Bucket fetches the objects of a bucket.
func (c *Client) Bucket(ctx context.Context, r BucketRequest) ([]BucketObject, error) {
	c.mask(r.AccessKey, r.SecretKey)
	title := fmt.Sprintf("fetching bucket %s from %s", r.Name, r.Endpoint)
	objects, err := BucketJob.Do(ctx, c.process, title, r)
	if err != nil {
		return nil, failed(Request{AWS, r.Endpoint}, title, err)
	}
	return objects, nil
}
