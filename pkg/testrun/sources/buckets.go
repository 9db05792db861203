package sources

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/fluxkit/flux/internal/sandbox/bucketserver"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// bucketSuffix distinguishes the path of a bucket from the path of a Helm repository with the same directory.
const bucketSuffix = "-bucket"

// addressOf returns the URL of a source.
func addressOf(object controllers.Object) string {
	if object["kind"] == controllers.Bucket {
		return mapped.BucketURL(object)
	}
	return controllers.Path{"spec.url"}.String(object)
}

// serveBucket serves a tree as a bucket.
func (s *Server) serveBucket(ctx context.Context, m mapped.Mapping, tree fs.FS, name string) (redirect, error) {
	files, err := s.filesOf(ctx, m, tree)
	if err != nil {
		return redirect{}, err
	}
	if err := s.listen(ctx); err != nil {
		return redirect{}, err
	}
	objects := map[string]bucketserver.Object{}
	for key, content := range files {
		objects[key] = bucketserver.NewObject(content)
		if etag, known := m.ETags[key]; known && m.Added[key] == nil && !s.FakeSecrets {
			objects[key] = bucketserver.Object{Content: content, ETag: etag}
		}
	}
	name += bucketSuffix
	s.local.mu.Lock()
	defer s.local.mu.Unlock()
	s.local.buckets[name] = &bucketserver.Bucket{Name: name, Objects: objects, Modified: s.Now()}
	return bucketOf(m, name, s.local.server.Address), nil
}

// bucketOf returns the redirection of Buckets to a bucket of a server.
func bucketOf(m mapped.Mapping, name, server string) redirect {
	when := `object.spec.endpoint + "/" + object.spec.bucketName == ` + strconv.Quote(mapped.Place(m.URL))
	if m.Ref != nil {
		prefix, _ := m.Ref["prefix"].(string)
		when += ` && (has(object.spec.prefix) ? object.spec.prefix : "") == ` + strconv.Quote(prefix)
	}
	patch := ""
	for _, field := range [][2]string{{"endpoint", server}, {"bucketName", name}, {"provider", "generic"}, {"region", "us-east-1"}} {
		patch += fmt.Sprintf(`JSONPatch{op: "add", path: "/spec/%s", value: %s}, `, field[0], strconv.Quote(field[1]))
	}
	return redirect{m, policy.Redirect{Resource: buckets, When: when, Patch: "[" + patch + insecure + "]" + policy.Without(mappedFields[buckets])}, "http://" + server + "/" + name}
}
