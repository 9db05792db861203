package hostile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// answer is an endless response of an API server: a text, and one that is repeated.
type answer struct {
	path        string
	status      int
	begin, more string
	// zipped compresses the response, so that little data is sent.
	zipped bool
}

// hostileServer is an API server with one endless response.
type hostileServer struct {
	rest apiServer
	answer
}

// ServeHTTP implements http.Handler.
func (s hostileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, s.path) || s.path == "/api" && r.URL.Path != "/api" {
		s.rest.ServeHTTP(w, r)
		return
	}
	const size = 1 << 20
	begin, more := []byte(s.begin), []byte(strings.Repeat(s.more, max(1, size/len(s.more))))
	if s.zipped {
		w.Header().Set("Content-Encoding", "gzip")
		begin, more = zipped(begin), zipped(more) // a file may have several parts
	}
	w.Header().Set("Content-Type", "application/json")
	if s.status != 0 {
		w.WriteHeader(s.status)
	}
	_, err := w.Write(begin)
	for err == nil {
		_, err = w.Write(more)
	}
}

func zipped(text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(text) // a buffer accepts everything
	_ = w.Close()
	return b.Bytes()
}

// kubeconfig serves the answer over TLS to the test, and returns a kubeconfig for the server.
func (a answer) kubeconfig(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(hostileServer{cluster{}.served(t), a})
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, file, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '"+server.URL+"', certificate-authority-data: "+ca+"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: {}}]\n")
	return file
}

// answers lists commands on API servers with one endless response.
func answers() []other {
	const (
		object    = `{"metadata":{"namespace":"apps","name":"a"},"spec":{"a":"`
		items     = `{"kind":"List","apiVersion":"v1","items":[`
		small     = `{"metadata":{"namespace":"apps","name":"a","resourceVersion":"1"},"spec":{"path":"./"},"status":{}},`
		text      = "xxxxxxxxxxxxxxxx"
		groups    = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[`
		group     = `{"metadata":{"name":"a"},"versions":[]},`
		resources = "/kustomizations"
	)
	large, memory := "is larger than 32 MiB", "of memory: set GOMEMLIMIT to allow more"
	row := func(name, line, want string, exit int, a answer) other {
		return other{row{name: name, want: want, exit: exit, answer: &a}, strings.Fields(line)}
	}
	record := "record -o $FOLDER/recording"
	return []other{
		row("record, an endless /version response", record, "/version: the response "+large, 1, answer{path: "/version", begin: `{"gitVersion":"`, more: text}),
		row("record, a /version response of 1 MB that decompresses endlessly", record, "/version: the response "+large, 1, answer{path: "/version", begin: `{"gitVersion":"`, more: text, zipped: true}),
		row("record, endless discovery", record, "/apis: the response "+large, 1, answer{path: "/apis", begin: groups, more: group}),
		row("record, endless compressed discovery", record, "/api: the response "+large, 1, answer{path: "/api", begin: groups, more: group, zipped: true}),
		nightly(row("record, an endless list", record, "the recording has more than 2000000 lines", 1, answer{path: "/pods", begin: items, more: small})),
		nightly(row("record, an endless compressed list", record, "the recording has more than 2000000 lines", 1, answer{path: "/pods", begin: items, more: small, zipped: true})),
		row("record, an endless object", record, "pods: an object in the list "+large, 1, answer{path: "/pods", begin: items + object, more: text, zipped: true}),
		nightly(row("record, an object with endless values", record, "pods: an object in the list "+large, 1, answer{path: "/pods", begin: items + `{"spec":[`, more: "[],"})),
		row("record, an endless error response", record, "/pods: the error response is larger than 1 MiB", 1, answer{path: "/pods", status: http.StatusForbidden, begin: `{"kind":"Status","message":"`, more: text}),
		nightly(row("get, an endless compressed list", "get ks", memory, 1, answer{path: resources, begin: items, more: small, zipped: true})),
		nightly(row("get -o json, an endless list of values", "get ks -o json", "kustomizations: ", 1, answer{path: resources, begin: items + `{"spec":[`, more: `{"a":1},`, zipped: true})),
		row("why, an endless object", "why ks/app", large, 2, answer{path: resources + "/app", begin: object, more: text}),
		row("why, an endless compressed list", "why", memory, 2, answer{path: resources, begin: items, more: small, zipped: true}),
		row("check, an endless /version response", "check --pre", "/version: the response "+large, 1, answer{path: "/version", begin: `{"gitVersion":"`, more: text, zipped: true}),
		nightly(row("version, an endless list", "version", "is larger than", 1, answer{path: "/deployments", begin: items, more: small, zipped: true})),
	}
}
