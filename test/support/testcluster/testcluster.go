// Package testcluster starts sandboxes for tests: a real Kubernetes API, with or
// without the real controllers.
package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// Cluster is a running sandbox.
type Cluster struct {
	// Dir is the state directory, Kubeconfig the path of a kubeconfig for the
	// administrator.
	Dir, Kubeconfig string
	// Namespace is the namespace of the test in a shared sandbox, or "".
	Namespace string
	// Env contains the variables of `flux-sandbox env`, without PATH.
	Env map[string]string
	// Client is a client with administrator permissions.
	Client *kube.Client
	// crds are the CRDs that Upgrade has installed: the Flux version, and the revisions of all CRDs.
	crds struct {
		version   string
		revisions map[string]string
	}
}

// Bin returns the directory of flux-sandbox, kubectl and the controllers:
// FLUX_SANDBOX_BIN, or bin in the repository.
func Bin() string {
	if dir := os.Getenv("FLUX_SANDBOX_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(Root(), "bin")
}

// Root returns the root of the repository: the nearest directory with a go.mod above
// the working directory, or the working directory.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module github.com/fluxkit/flux\n")) {
			return at
		}
	}
	return dir
}

// Start runs a sandbox until the test and its subtests end. controllers is the
// value of --controllers of `flux-sandbox up`.
func Start(t testing.TB, controllers string) *Cluster {
	t.Helper()
	c, err := Up(t.Context(), controllers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Down(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Up runs a sandbox in a temporary directory until Down.
func Up(ctx context.Context, controllers string) (*Cluster, error) {
	// The path must be short, because the directory contains sockets.
	dir, err := os.MkdirTemp("", "flux-test-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir}
	ctx, cancel := context.WithTimeout(ctx, testlimit.Wait)
	defer cancel()
	out, err := c.sandbox(ctx, "up", "--controllers="+controllers)
	if err != nil {
		err = fmt.Errorf("starting a sandbox with %s (make sandbox builds it): %w\n%s", Bin(), err, out)
		return nil, errors.Join(err, c.Down())
	}
	if err := c.connect(ctx); err != nil {
		return nil, errors.Join(err, c.Down())
	}
	return c, nil
}

// Down stops the sandbox and removes its state.
func (c *Cluster) Down() error {
	ctx, cancel := context.WithTimeout(context.Background(), testlimit.Wait)
	defer cancel()
	if out, err := c.sandbox(ctx, "down"); err != nil {
		return fmt.Errorf("stopping the sandbox: %w\n%s", err, out)
	}
	return os.RemoveAll(c.Dir)
}

func (c *Cluster) sandbox(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(Bin(), "flux-sandbox"), append(args, "--dir", c.Dir)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Sandbox runs a command of flux-sandbox on the cluster and returns its output.
func (c *Cluster) Sandbox(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.sandbox(t.Context(), args...)
	if err != nil {
		t.Fatalf("flux-sandbox %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

var exports = regexp.MustCompile(`(?m)^export ([A-Z_]+)='([^']*)'$`)

func (c *Cluster) connect(ctx context.Context) error {
	out, err := c.sandbox(ctx, "env")
	if err != nil {
		return fmt.Errorf("reading the sandbox's environment: %w\n%s", err, out)
	}
	c.Env = map[string]string{}
	for _, m := range exports.FindAllStringSubmatch(out, -1) {
		c.Env[m[1]] = m[2]
	}
	c.Kubeconfig = c.Env["KUBECONFIG"]
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the sandbox's kubeconfig: %w", err)
	}
	c.Client, err = kube.New(cfg)
	return err
}

// apply applies CRDs without descriptions, which the API server would only process, and waits until their
// objects are served. For a moment after a CRD is established, the API server has no cache for them and
// returns 429, which flux would print as a warning.
func (c *Cluster) apply(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		withoutDescriptions(crd.Object)
	}
	if err := kube.Apply(ctx, c.Client, crds); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)["name"].(string)
			r := kube.ResourceFor(schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
			g.Go(func() error { return c.waitServed(ctx, r) })
		}
	}
	return g.Wait()
}

// withoutDescriptions removes the descriptions from the schemas of a CRD. A property that is called description is not
// text but a schema.
func withoutDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, text := value["description"].(string); text {
			delete(value, "description")
		}
		for _, field := range value {
			withoutDescriptions(field)
		}
	case []any:
		for _, item := range value {
			withoutDescriptions(item)
		}
	}
}

// waitServed waits until objects of a resource can be listed. A CRD that gets another version remains
// established, and for a moment the API server returns 404 for that version. Discovery cannot be
// watched.
func (c *Cluster) waitServed(ctx context.Context, r kube.Resource) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, testlimit.Wait, true, func(ctx context.Context) (bool, error) {
		_, err := c.Client.List(ctx, r, kube.Selection{}, func(controllers.Object) error { return nil })
		if kube.NotServed(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// Seed applies the objects of YAML documents and writes their statuses, like controllers. Objects
// without a namespace are created in the given one. Permissions are granted when it returns.
func (c *Cluster) Seed(ctx context.Context, data []byte, namespace string) error {
	objects, err := Decode(data)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetNamespace() == "" && !kube.ResourceFor(o.GroupVersionKind()).ClusterScoped {
			o.SetNamespace(namespace)
		}
	}
	if err := kube.Apply(ctx, c.Client, withoutStatus(objects)); err != nil {
		return err
	}
	for _, o := range objects {
		status, ok := o.Object["status"]
		if !ok {
			continue
		}
		if err := c.Client.PatchStatus(ctx, kube.ResourceFor(o.GroupVersionKind()), o.GetNamespace(), o.GetName(), status); err != nil {
			return fmt.Errorf("writing the status of %s: %w", kube.Describe(o), err)
		}
	}
	return c.waitPermitted(ctx, objects)
}

func withoutStatus(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	bare := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		bare[i] = o.DeepCopy()
		delete(bare[i].Object, "status")
	}
	return bare
}

// Decode decodes the objects of YAML documents.
func Decode(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := d.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading objects: %w", err)
		case len(o.Object) > 0:
			objects = append(objects, o)
		}
	}
}
