package vendored

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/git/remote"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository/desired"
)

// unsupportedError is returned for a Bucket that cannot be fetched.
type unsupportedError struct{ what string }

func (e *unsupportedError) Error() string { return e.what + " cannot be vendored" }

// Unwrap returns build.ErrNotFound, so that objects that need the source are not built.
func (e *unsupportedError) Unwrap() error { return build.ErrNotFound }

// supported returns an error for a Bucket with another server API, or with credentials from a
// security token service.
func supported(o *unstructured.Unstructured) error {
	if provider := desired.Text(o, "spec", "provider"); !cloud.KnownBucket(provider) {
		return &unsupportedError{"buckets of provider " + provider}
	}
	if _, issued, _ := unstructured.NestedMap(o.Object, "spec", "sts"); issued {
		return &unsupportedError{"buckets with spec.sts"}
	}
	return nil
}

// bucket implements reader.
func (f *Fetcher) bucket(ctx context.Context, wanted Source, o *unstructured.Unstructured, lookup build.Lookup) (map[string][]byte, error) {
	if err := supported(o); err != nil {
		return nil, err
	}
	wanted.File = archivePath(wanted)
	if s, known := f.next.find(wanted); known {
		return f.unpack(ctx, s.File)
	}
	f.Progress("fetching " + wanted.String())
	request, err := f.bucketRequest(ctx, o, lookup)
	if err != nil {
		return nil, err
	}
	old, known := f.known(wanted)
	request.Known = old.Revision
	request.Directory = filepath.Join(f.root.Name(), f.staging, "objects", path.Base(wanted.File))
	if err := os.MkdirAll(request.Directory, 0o700); err != nil {
		return nil, err
	}
	objects, err := f.Buckets(ctx, request)
	var failed *cloud.Error
	switch {
	case errors.As(err, &failed) && failed.Step == cloud.CheckBucket:
		return nil, hint.Errorf(mapRemedy, "%w", err)
	case err != nil:
		return nil, registry.Explain(ctx, registry.Access{}, err)
	}
	if wanted.Revision = cloud.BucketRevision(objects); known && old.Revision == wanted.Revision {
		return f.keep(ctx, old)
	}
	files := map[string][]byte{}
	wanted.ETags = map[string]string{}
	for i, object := range objects {
		wanted.ETags[object.Key] = object.ETag
		if files[object.Key], err = os.ReadFile(filepath.Join(request.Directory, strconv.Itoa(i))); err != nil {
			return nil, err
		}
	}
	return files, f.pack(wanted, files)
}

// bucketRequest returns a bucket with its credentials. Without the Secret, the bucket may be public.
func (f *Fetcher) bucketRequest(ctx context.Context, o *unstructured.Unstructured, lookup build.Lookup) (cloud.BucketRequest, error) {
	text := func(path ...string) string { return desired.Text(o, append([]string{"spec"}, path...)...) }
	r := cloud.BucketRequest{Endpoint: text("endpoint"), Name: text("bucketName"), Region: text("region"), Prefix: text("prefix")}
	r.Insecure, _, _ = unstructured.NestedBool(o.Object, "spec", "insecure")
	secrets := map[string]map[string][]byte{}
	for _, field := range []string{"secretRef", "certSecretRef", "proxySecretRef"} {
		if name := text(field, "name"); name != "" {
			data, err := lookup.Data(ctx, controllers.ID{Kind: controllers.Secret, Namespace: o.GetNamespace(), Name: name})
			if err != nil && !errors.Is(err, build.ErrNotFound) {
				return r, fmt.Errorf("reading the Secret %s of spec.%s: %w", name, field, err)
			}
			secrets[field] = data
		}
	}
	keys, tls := secrets["secretRef"], secrets["certSecretRef"]
	r.AccessKey, r.SecretKey = string(keys["accesskey"]), string(keys["secretkey"])
	r.CA, r.Cert, r.Key = tls["ca.crt"], tls["tls.crt"], tls["tls.key"]
	var err error
	if r.Proxy, err = (remote.Source{Proxy: secrets["proxySecretRef"]}).ProxyURL(); err != nil {
		return r, err
	}
	if provider := text("provider"); provider == cloud.AWS && text("secretRef", "name") == "" {
		if f.Git.Provider != provider {
			return r, hint.Errorf("set --provider "+provider+" to use the identity of the environment, or "+mapRemedy,
				"%s gets its credentials from %s, with the identity of source-controller", controllers.IDOf(o.Object), provider)
		}
		r.Identity = true
	}
	return r, nil
}
