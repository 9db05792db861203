package bucketserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestBucket checks which requests are answered.
func TestBucket(t *testing.T) {
	t.Parallel()
	b := &Bucket{Name: "assets", Modified: time.Unix(0, 0), Objects: map[string]Object{
		"apps/a b.yaml": NewObject([]byte("text")), "apps/<b>": {Content: []byte("more"), ETag: "e-1"}, "other": NewObject(nil),
	}}
	for _, c := range []struct {
		method, url string
		status      int
		want        string
	}{
		{"HEAD", "/assets/", 200, ""},
		{"GET", "/assets/apps/a%20b.yaml", 200, "text"},
		{"GET", "/assets/apps/a%20b.yaml?x-id=GetObject", 200, "text"},
		{"GET", "/assets?list-type=2&prefix=apps/", 200, "<Key>apps/&lt;b&gt;</Key><LastModified>1970-01-01T00:00:00.000Z</LastModified><ETag>&#34;e-1&#34;</ETag><Size>4</Size>"},
		{"GET", "/assets/?list-type=2&prefix=apps%2F&encoding-type=url&delimiter=&fetch-owner=true", 200, "<Key>apps%2Fa+b.yaml</Key>"},
		{"GET", "/assets/?list-type=2&prefix=none", 200, "<KeyCount>0</KeyCount>"},
		{"GET", "/assets/gone", 404, "<Code>NoSuchKey</Code>"},
		{"HEAD", "/assets/gone", 404, ""},
		{"GET", "/others/other", 404, "<Code>NoSuchBucket</Code>"},
		{"PUT", "/assets/other", 405, "<Code>MethodNotAllowed</Code>"},
		{"DELETE", "/assets/other", 405, "<Code>MethodNotAllowed</Code>"},
		{"GET", "/assets/?location", 501, "<Code>NotImplemented</Code>"},
		{"GET", "/assets/", 501, "<Code>NotImplemented</Code>"},
		{"GET", "/assets/?list-type=2&delimiter=/", 501, "<Code>NotImplemented</Code>"},
		{"GET", "/assets/?list-type=2&continuation-token=x", 501, "<Code>NotImplemented</Code>"},
		{"GET", "/assets/other?versionId=1", 501, "<Code>NotImplemented</Code>"},
	} {
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.url, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || c.method == http.MethodHead && w.Body.Len() > 0 {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.url, w.Code, w.Body, c.status, c.want)
		}
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/assets/other", nil)
	request.Header.Set("If-Match", `"x"`)
	w := httptest.NewRecorder()
	if b.ServeHTTP(w, request); w.Code != http.StatusPreconditionFailed {
		t.Errorf("another ETag: %d", w.Code)
	}
}
