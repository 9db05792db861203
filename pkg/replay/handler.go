package replay

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Handler returns the handler of the API. It serves requests with the bearer token only.
func (r *Recording) Handler(token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		given := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
		switch {
		case subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
			failed(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized").write(w)
		case request.Method != http.MethodGet && request.Method != http.MethodHead:
			readOnly().write(w)
		default:
			r.serve(w, request)
		}
	})
}

func (r *Recording) serve(w http.ResponseWriter, request *http.Request) {
	path := strings.Trim(request.URL.Path, "/")
	steps := strings.Split(path, "/")
	switch {
	case path == "version" || steps[0] == "flux-recording":
		r.serveDocument(w, "/"+path)
	case path == "api" || path == "apis":
		r.serveRoot(w, request, "/"+path)
	case steps[0] == "api" && len(steps) >= 2:
		r.serveGroup(w, request, "", steps[1], steps[2:])
	case steps[0] == "apis" && len(steps) == 2:
		r.serveVersions(w, steps[1])
	case steps[0] == "apis" && len(steps) > 2:
		r.serveGroup(w, request, steps[1], steps[2], steps[3:])
	default:
		notServed(w)
	}
}

// notServed is the response of an API server to an unknown path.
func notServed(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

func (r *Recording) serveDocument(w http.ResponseWriter, path string) {
	d, ok := r.documents[path]
	switch {
	case !ok:
		notRecorded("%s is not in the recording", path).write(w)
	case d.Error != nil:
		(&failure{*d.Error}).write(w)
	default:
		writeJSON(w, http.StatusOK, d.Body)
	}
}

// serveRoot serves aggregated discovery, which all clients since Kubernetes 1.27 request first.
func (r *Recording) serveRoot(w http.ResponseWriter, request *http.Request, path string) {
	if d := r.documents[path]; d.Body != nil && strings.Contains(request.Header.Get("Accept"), "APIGroupDiscoveryList") {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = w.Write(d.Body) // fails only if the client has disconnected
		return
	}
	if path == "/api" {
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	}
	all := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range r.groups {
		if g.Name != "" {
			all.Groups = append(all.Groups, versionsOf(g))
		}
	}
	writeJSON(w, http.StatusOK, all)
}

func (r *Recording) serveVersions(w http.ResponseWriter, group string) {
	for _, g := range r.groups {
		if g.Name == group {
			writeJSON(w, http.StatusOK, versionsOf(g))
			return
		}
	}
	if d := r.documents["/apis"]; d.Error != nil {
		(&failure{*d.Error}).write(w)
		return
	}
	notServed(w)
}

func versionsOf(g apidiscovery.APIGroupDiscovery) metav1.APIGroup {
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: g.Name}
	for _, v := range g.Versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: g.Name + "/" + v.Version, Version: v.Version})
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

// serveGroup serves the resource types or the objects of an API version.
func (r *Recording) serveGroup(w http.ResponseWriter, request *http.Request, group, version string, rest []string) {
	if len(rest) == 0 {
		r.serveResources(w, group, version)
		return
	}
	q, ok := newQuery(request, group, version, rest)
	if !ok || !r.served(group, version, q.resource) {
		notServed(w)
		return
	}
	if f := r.serveObjects(w, request, q); f != nil {
		f.write(w)
	}
}

func (r *Recording) serveResources(w http.ResponseWriter, group, version string) {
	for _, g := range r.groups {
		for _, v := range g.Versions {
			if g.Name == group && v.Version == version {
				writeJSON(w, http.StatusOK, resourcesOf(strings.TrimPrefix(group+"/"+version, "/"), v))
				return
			}
		}
	}
	notServed(w)
}

func resourcesOf(groupVersion string, v apidiscovery.APIVersionDiscovery) metav1.APIResourceList {
	all := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: groupVersion, APIResources: []metav1.APIResource{}}
	for _, served := range v.Resources {
		one := metav1.APIResource{
			Name: served.Resource, SingularName: served.SingularResource, Namespaced: served.Scope == apidiscovery.ScopeNamespace,
			Verbs: served.Verbs, ShortNames: served.ShortNames, Categories: served.Categories,
		}
		if served.ResponseKind != nil {
			one.Kind = served.ResponseKind.Kind
		}
		all.APIResources = append(all.APIResources, one)
	}
	return all
}

// warn adds the warning of the API server about a deprecated version of a custom resource.
func (r *Recording) warn(w http.ResponseWriter, q query) {
	crds, f := r.find(query{group: "apiextensions.k8s.io", version: "v1", resource: "customresourcedefinitions"})
	if f != nil {
		return
	}
	i, ok := crds.index("/" + q.resource + "." + q.group)
	if !ok {
		return
	}
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Name               string
				Deprecated         bool
				DeprecationWarning *string
			}
		}
	}
	if json.Unmarshal(crds.items[i].raw, &crd) != nil {
		return
	}
	for _, v := range crd.Spec.Versions {
		if v.Name != q.version || !v.Deprecated {
			continue
		}
		text := fmt.Sprintf("%s/%s %s is deprecated", q.group, q.version, crd.Spec.Names.Kind)
		if v.DeprecationWarning != nil {
			text = *v.DeprecationWarning
		}
		w.Header().Add("Warning", fmt.Sprintf("299 - %q", text))
	}
}
