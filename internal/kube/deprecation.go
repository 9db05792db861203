package kube

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/fluxkit/flux/pkg/controllers"
)

// errSuperseded is returned by reads whose API version the server declares deprecated, although
// flux knows a newer version of the kind.
var errSuperseded = errors.New("the server declares the API version deprecated")

// deprecation is a rest.WarningHandler for reads of Flux kinds. The only warning about a read is
// that its version is deprecated, which the user cannot change.
type deprecation struct{ found bool }

// HandleWarningHeader implements rest.WarningHandler.
func (d *deprecation) HandleWarningHeader(int, string, string) { d.found = true }

// read returns a request for an object or a collection, and a function that returns errSuperseded
// after the response if another version is to be read.
func (r Resource) read(raw rest.Interface, namespace, name string) (*rest.Request, func() error) {
	request := r.locate(raw.Get(), namespace, name)
	if !slices.Contains(controllers.Groups(), r.Group) {
		return request, func() error { return nil }
	}
	d := &deprecation{}
	return request.WarningHandler(d), func() error {
		if d.found && r.supersedable {
			return errSuperseded
		}
		return nil
	}
}

// dropDeprecation removes the warnings from the response to a change or a watch if flux has
// selected the API version of the request: the user cannot change it. Objects that are applied
// or created have the version of their manifest.
func dropDeprecation(r *http.Request, response *http.Response) {
	applied := r.Method == http.MethodPost || r.Method == http.MethodPut ||
		strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	read := r.Method == http.MethodGet && !r.URL.Query().Has("watch")
	// The address of the server may have a path.
	_, path, _ := strings.Cut(r.URL.Path, "/apis/")
	group, _, _ := strings.Cut(path, "/")
	if !applied && !read && slices.Contains(controllers.Groups(), group) {
		response.Header.Del("Warning")
	}
}
