// Package testrelease serves Flux releases on loopback at their real addresses, and
// builds release archives from rendered manifests.
package testrelease

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/test/support/testproxy"
)

const (
	host   = "github.com"
	assets = "release-assets.githubusercontent.com"
	prefix = "/fluxcd/flux2/releases/"
)

// Server serves releases until Close.
type Server struct {
	*testproxy.Proxy

	mu       sync.Mutex
	latest   string
	files    map[string][]byte
	requests []string
}

// Start serves releases without files. The certificate authority is written to a
// file.
func Start(authority string) (*Server, error) {
	s := &Server{files: map[string][]byte{}}
	var err error
	s.Proxy, err = testproxy.Start(authority, []string{host, assets}, s)
	return s, err
}

// Put adds a file to a release, which becomes the latest one.
func (s *Server) Put(version, name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest, s.files[version+"/"+name] = version, data
}

// Requests returns the requests to the release host since the last call.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	slices.Sort(requests)
	return requests
}

// ServeHTTP implements http.Handler. Like GitHub, it redirects to another host
// with a signature in the query.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/")
	if r.Host == host {
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		name = strings.TrimPrefix(r.URL.Path, prefix+"download/")
	}
	data, found := s.files[name]
	switch {
	case r.Host == host && r.URL.Path == prefix+"latest":
		http.Redirect(w, r, "https://"+host+prefix+"tag/"+s.latest, http.StatusFound)
	case !found:
		http.NotFound(w, r)
	case r.Host == host:
		http.Redirect(w, r, "https://"+assets+"/"+name+"?signature=test", http.StatusFound)
	case r.URL.Query().Get("signature") == "":
		http.Error(w, "no signature", http.StatusForbidden)
	default:
		_, _ = w.Write(data) // the client may have disconnected
	}
}

// Archive returns the manifests.tar.gz of a release, from manifests rendered with the
// default options, without the effects of these options.
func Archive(objects []*unstructured.Unstructured) ([]byte, error) {
	files := map[string][]byte{}
	for _, object := range objects {
		file := strip(object)
		if file == "" {
			continue
		}
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		files[file] = append(append(files[file], "---\n"...), data...)
	}
	var compressed bytes.Buffer
	zipped := gzip.NewWriter(&compressed)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return compressed.Bytes(), err
}

// strip removes the effects of installation options from an object, and returns its file
// in a release, or "" if it is in none.
func strip(o *unstructured.Unstructured) string {
	labels := o.GetLabels()
	component := labels["app.kubernetes.io/component"]
	o.SetLabels(released(labels))
	if o.GetKind() != "Namespace" {
		o.SetNamespace("")
	}
	switch {
	case component != "":
		if o.GetKind() == "Deployment" {
			stripDeployment(o)
		}
		return component + ".yaml"
	case o.GetKind() == "NetworkPolicy":
		return "policies.yaml"
	case o.GetKind() == "Namespace":
		return ""
	}
	const suffix = "-flux-system"
	o.SetName(strings.TrimSuffix(o.GetName(), suffix))
	if role, found, _ := unstructured.NestedString(o.Object, "roleRef", "name"); found {
		_ = unstructured.SetNestedField(o.Object, strings.TrimSuffix(role, suffix), "roleRef", "name") // always a map
	}
	return "rbac.yaml"
}

func stripDeployment(o *unstructured.Unstructured) {
	pod, _, _ := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	delete(pod, "nodeSelector")
	container := pod["containers"].([]any)[0].(map[string]any)
	container["image"] = "fluxcd/" + path.Base(container["image"].(string))
	var args []any
	for _, arg := range container["args"].([]any) {
		switch text := arg.(string); {
		case text == "--watch-all-namespaces=true":
			args = append(args, "--watch-all-namespaces")
		case strings.HasPrefix(text, "--feature-gates="):
		default:
			args = append(args, text)
		}
	}
	container["args"] = args
	_ = unstructured.SetNestedMap(o.Object, pod, "spec", "template", "spec") // it was read from this path
	labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	_ = unstructured.SetNestedStringMap(o.Object, released(labels), "spec", "template", "metadata", "labels")
}

func released(labels map[string]string) map[string]string {
	delete(labels, "app.kubernetes.io/instance")
	delete(labels, "app.kubernetes.io/version")
	delete(labels, "app.kubernetes.io/part-of")
	return labels
}
