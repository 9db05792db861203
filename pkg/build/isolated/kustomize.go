package isolated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/web/egress"
	"github.com/fluxkit/flux/pkg/build"
)

// KustomizeJob is the job that runs kustomize, and the argument of its process.
const KustomizeJob helper.Call[string, []json.RawMessage] = "kustomize"

// proxyVariable is the environment variable with the proxy through which kustomize may fetch remote
// bases.
const proxyVariable = "HTTPS_PROXY"

// Kustomizer implements build.Kustomizer in a helper process.
type Kustomizer struct {
	process *helper.Process
	bases   *bases
}

// NewKustomizer returns a kustomizer that may fetch remote bases from the hosts.
func NewKustomizer(pool *helper.Pool, hosts egress.Hosts) *Kustomizer {
	return helper.Shared(pool, string(KustomizeJob)+" "+strings.Join(hosts, ","), func() *Kustomizer {
		b := &bases{hosts: hosts, pool: pool}
		return &Kustomizer{pool.Process("kustomize", b.environment, string(KustomizeJob)), b}
	})
}

// call is a call of a method of build.FileSystem.
type call struct {
	Method string `json:"method"`
	Name   string `json:"name"`
}

// result is the result of a call.
type result struct {
	Data  []byte   `json:"data,omitempty"`
	Names []string `json:"names,omitempty"`
	True  bool     `json:"true,omitempty"`
}

// Allows implements build.Kustomizer.
func (k *Kustomizer) Allows(host string) bool { return k.bases.hosts.Allows(host) }

// Kustomize implements build.Kustomizer.
func (k *Kustomizer) Kustomize(ctx context.Context, folder string, from build.FileSystem) ([][]byte, error) {
	raw, err := KustomizeJob.DoWithQueries(ctx, k.process, "kustomize", folder,
		func(query json.RawMessage) (any, error) { return read(from, query) })
	if refused := k.bases.refused(); err != nil && refused != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %s", err, refused) //nolint:errorlint // wrapping it would make it a failure of the API server
	}
	objects := make([][]byte, len(raw))
	for i, o := range raw {
		objects[i] = o
	}
	return objects, err
}

// read executes a call on a source.
func read(from build.FileSystem, query json.RawMessage) (any, error) {
	var c call
	if err := json.Unmarshal(query, &c); err != nil {
		return nil, err
	}
	var r result
	var err error
	switch c.Method {
	case "IsDir":
		r.True = from.IsDir(c.Name)
	case "Exists":
		r.True = from.Exists(c.Name)
	case "ReadFile":
		r.Data, err = from.ReadFile(c.Name)
	case "ReadDir":
		r.Names, err = from.ReadDir(c.Name)
	case "Glob":
		r.Names, err = from.Glob(c.Name)
	}
	return r, err
}

// TemplateJob is a job of the same process as KustomizeJob. It executes the templates of a ResourceSet.
const TemplateJob helper.Call[templates, [][]string] = "template"

// templates is the input of TemplateJob.
type templates struct {
	Templates []build.Template `json:"templates"`
	Inputs    []map[string]any `json:"inputs"`
}

// UnmarshalJSON keeps integers, which templates print without exponents.
func (t *templates) UnmarshalJSON(text []byte) error {
	type plain templates
	return utiljson.Unmarshal(text, (*plain)(t))
}

// Execute implements build.Kustomizer.
func (k *Kustomizer) Execute(ctx context.Context, all []build.Template, inputs []map[string]any) ([][]string, error) {
	return TemplateJob.Do(ctx, k.process, "executing templates", templates{all, inputs})
}

// KustomizeHandlers returns the handlers of KustomizeJob and TemplateJob for flux-helper.
func KustomizeHandlers(execute func(context.Context, []build.Template, []map[string]any) ([][]string, error)) []helper.Handler {
	return []helper.Handler{
		KustomizeJob.QueryHandler(Kustomize),
		TemplateJob.Handler(func(ctx context.Context, t templates) ([][]string, error) { return execute(ctx, t.Templates, t.Inputs) }),
	}
}

// Close stops the helper process and the proxy for remote bases.
func (k *Kustomizer) Close() error {
	return errors.Join(k.process.Close(), k.bases.close())
}

// Kustomize runs kustomize in flux-helper.
func Kustomize(ctx context.Context, folder string, query helper.Query) ([]json.RawMessage, error) {
	objects, err := build.Kustomize(folder, &source{ctx, query})
	raw := make([]json.RawMessage, len(objects))
	for i, o := range objects {
		raw[i] = o
	}
	return raw, err
}

// RestrictNetwork sends all HTTP requests of this process through the proxy in its environment, and
// rejects them if no proxy is set. It replaces http.DefaultTransport, which kustomize uses.
func RestrictNetwork(env func(string) string) error {
	transport := &http.Transport{Proxy: refuse}
	if address := env(proxyVariable); address != "" {
		proxy, err := url.Parse(address)
		if err != nil {
			return fmt.Errorf("invalid proxy URL: %w", err)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	http.DefaultTransport = transport
	return nil
}

func refuse(r *http.Request) (*url.URL, error) {
	return nil, fmt.Errorf("remote bases are not allowed: allow the host with --allow-remote-bases %s", r.URL.Hostname())
}

// source reads the files of a build from the process that started the job.
type source struct {
	ctx   context.Context // the methods of build.FileSystem have no context parameter
	query helper.Query
}

var _ build.FileSystem = (*source)(nil)

func (s *source) call(method, name string) (r result, err error) {
	err = s.query(s.ctx, call{method, name}, &r)
	return r, err
}

// IsDir implements build.FileSystem.
func (s *source) IsDir(name string) bool {
	r, err := s.call("IsDir", name)
	return err == nil && r.True
}

// Exists implements build.FileSystem.
func (s *source) Exists(name string) bool {
	r, err := s.call("Exists", name)
	return err == nil && r.True
}

// ReadFile implements build.FileSystem.
func (s *source) ReadFile(name string) ([]byte, error) {
	r, err := s.call("ReadFile", name)
	return r.Data, err
}

// ReadDir implements build.FileSystem.
func (s *source) ReadDir(name string) ([]string, error) {
	r, err := s.call("ReadDir", name)
	return r.Names, err
}

// Glob implements build.FileSystem.
func (s *source) Glob(pattern string) ([]string, error) {
	r, err := s.call("Glob", pattern)
	return r.Names, err
}
