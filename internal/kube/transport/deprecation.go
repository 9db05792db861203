package transport

import (
	"net/http"
	"slices"
	"strings"

	"github.com/fluxkit/flux/pkg/controllers"
)

// dropDeprecation removes the warnings from responses about Flux objects whose API version flux has
// selected, because the user cannot change the version. The warnings for applied and created
// objects are kept, because their manifests specify the version.
func dropDeprecation(r *http.Request, response *http.Response) {
	applied := r.Method == http.MethodPost || r.Method == http.MethodPut ||
		strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	// The server address may include a path.
	_, path, _ := strings.Cut(r.URL.Path, "/apis/")
	group, _, _ := strings.Cut(path, "/")
	if !applied && slices.Contains(controllers.Groups(), group) {
		response.Header.Del("Warning")
	}
}
