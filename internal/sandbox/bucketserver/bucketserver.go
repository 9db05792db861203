// Package bucketserver serves files as the objects of a read-only S3 bucket. It supports only
// the requests that source-controller sends; all others fail.
package bucketserver

import (
	"bytes"
	"crypto/md5" // S3 uses MD5 for ETags
	"encoding/hex"
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Object is an object of a bucket.
type Object struct {
	Content []byte
	// ETag identifies the content. source-controller derives the revision of a Bucket from it.
	ETag string
}

// NewObject returns an object with the ETag that S3 uses for small objects.
func NewObject(content []byte) Object {
	sum := md5.Sum(content) // as above
	return Object{content, hex.EncodeToString(sum[:])}
}

// Bucket is an http.Handler for the bucket Name, whose URL contains the name in the path.
type Bucket struct {
	Name    string
	Objects map[string]Object
	// Modified is the time of the last modification of all objects.
	Modified time.Time
}

// s3Error is the body of an error response.
type s3Error struct {
	XMLName  xml.Name `xml:"Error"`
	Code     string
	Message  string
	Resource string
}

// Fail responds to a request with an S3 error.
func Fail(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_ = xml.NewEncoder(w).Encode(s3Error{Code: code, Message: message, Resource: r.URL.Path}) // the client detects the incomplete response
	}
}

// ServeHTTP implements http.Handler.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query, err := url.ParseQuery(r.URL.RawQuery)
	switch {
	case err != nil:
		Fail(w, r, http.StatusBadRequest, "InvalidArgument", err.Error())
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		Fail(w, r, http.StatusMethodNotAllowed, "MethodNotAllowed", "the bucket is read-only")
	case name != b.Name:
		Fail(w, r, http.StatusNotFound, "NoSuchBucket", "the bucket does not exist")
	case key != "":
		b.object(w, r, key, query)
	case r.Method == http.MethodHead && len(query) == 0:
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodGet && query.Get("list-type") == "2":
		b.list(w, r, query)
	default:
		Fail(w, r, http.StatusNotImplemented, "NotImplemented", "the bucket supports only listing and reading objects")
	}
}

// unknown reports whether a query contains an unsupported parameter or an unsupported value.
func unknown(query url.Values, known map[string]string) bool {
	for name, values := range query {
		only, ok := known[name]
		if !ok || len(values) != 1 || only != anyValue && values[0] != only {
			return true
		}
	}
	return false
}

// anyValue marks parameters that accept any value.
const anyValue = "*"

func (b *Bucket) object(w http.ResponseWriter, r *http.Request, key string, query url.Values) {
	object, ok := b.Objects[key]
	switch {
	case unknown(query, map[string]string{"x-id": anyValue}):
		Fail(w, r, http.StatusNotImplemented, "NotImplemented", "unknown parameters")
	case !ok:
		Fail(w, r, http.StatusNotFound, "NoSuchKey", "the object does not exist")
	default:
		w.Header().Set("ETag", `"`+object.ETag+`"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", b.Modified, bytes.NewReader(object.Content))
	}
}

// listing is the response to ListObjectsV2.
type listing struct {
	XMLName      xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name         string
	Prefix       string
	KeyCount     int
	MaxKeys      int
	EncodingType string `xml:",omitempty"`
	IsTruncated  bool
	Contents     []content
}

type content struct {
	Key, LastModified, ETag string
	Size                    int
	StorageClass            string
}

// list lists all objects with a prefix at once.
func (b *Bucket) list(w http.ResponseWriter, r *http.Request, query url.Values) {
	if unknown(query, map[string]string{"list-type": "2", "encoding-type": "url", "prefix": anyValue, "delimiter": "", "fetch-owner": anyValue}) {
		Fail(w, r, http.StatusNotImplemented, "NotImplemented", "unknown parameters")
		return
	}
	l := listing{Name: b.Name, Prefix: query.Get("prefix"), EncodingType: query.Get("encoding-type")}
	encoded := func(text string) string { return text }
	if l.EncodingType != "" {
		encoded = url.QueryEscape
	}
	for _, key := range slices.Sorted(maps.Keys(b.Objects)) {
		if o := b.Objects[key]; strings.HasPrefix(key, l.Prefix) {
			l.Contents = append(l.Contents, content{encoded(key), b.Modified.UTC().Format("2006-01-02T15:04:05.000Z"), `"` + o.ETag + `"`, len(o.Content), "STANDARD"})
		}
	}
	l.Prefix, l.KeyCount, l.MaxKeys = encoded(l.Prefix), len(l.Contents), len(l.Contents)
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(l) // the client detects the incomplete response
}
