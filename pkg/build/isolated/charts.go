// Package isolated runs Helm and kustomize in the helper process, which limits their memory and
// exits when flux exits.
package isolated

import (
	"context"
	"encoding/json"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/internal/cachedir"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
)

// RenderJob is the job that renders charts, and the first argument of its process. The second one
// is the directory of the chart cache.
const RenderJob helper.Call[rendering, *charts.Rendered] = "render"

// Charts implements charts.Renderer in a helper process.
type Charts struct{ process *helper.Process }

// NewCharts returns a renderer that keeps charts in the directory cache.
func NewCharts(pool *helper.Pool, cache string) *Charts {
	return helper.Shared(pool, string(RenderJob)+" "+cache, func() *Charts {
		return &Charts{pool.Process("helm", pool.Named(chartVariables()...), string(RenderJob), cache)}
	})
}

// CachedCharts returns a renderer that keeps charts in the user's cache directory.
func CachedCharts(pool *helper.Pool) (charts.Renderer, error) {
	cache, err := cachedir.User("charts")
	if err != nil {
		return nil, err
	}
	return NewCharts(pool, string(cache)), nil
}

// chartVariables returns the environment variables of a process that renders charts: locations of
// files, network settings, and the registries of "docker login". Charts control the process, so
// they must not have access to the tokens of a pipeline.
func chartVariables() []string {
	return append([]string{
		"PATH", "HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE",
		"USERPROFILE", "LOCALAPPDATA", // Windows
	}, helper.Network()...)
}

// rendering is the input of RenderJob.
type rendering struct {
	Release *charts.Release `json:"release"`
	// Lookups is set if the templates may look up objects.
	Lookups bool `json:"lookups,omitempty"`
}

// found is an object that a template looked up; it is empty if the object does not exist.
type found struct {
	Object json.RawMessage `json:"object,omitempty"`
}

// Render implements charts.Renderer.
func (c *Charts) Render(ctx context.Context, release charts.Release) (*charts.Rendered, error) {
	return RenderJob.DoWithQueries(ctx, c.process, "rendering chart "+release.Chart.Name, rendering{&release, release.Find != nil},
		func(query json.RawMessage) (any, error) { return lookUp(ctx, release.Find, query) })
}

func lookUp(ctx context.Context, find build.Finder, query json.RawMessage) (any, error) {
	var wanted build.Wanted
	if err := json.Unmarshal(query, &wanted); err != nil {
		return nil, err
	}
	object, err := find(ctx, wanted)
	if err != nil || object == nil {
		return found{}, err
	}
	encoded, err := json.Marshal(object)
	return found{encoded}, err
}

// FetchJob is a job of the same process as RenderJob. It fetches charts.
const FetchJob helper.Call[charts.Chart, *charts.Fetched] = "fetch"

// Fetch implements charts.Fetcher.
func (c *Charts) Fetch(ctx context.Context, chart charts.Chart) (*charts.Fetched, error) {
	return FetchJob.Do(ctx, c.process, "fetching chart "+chart.Name, chart)
}

// Close stops the helper process.
func (c *Charts) Close() error { return c.process.Close() }

// Handlers returns the handlers of RenderJob and FetchJob for flux-helper.
func Handlers(renderer interface {
	charts.Renderer
	charts.Fetcher
},
) []helper.Handler {
	return []helper.Handler{
		RenderJob.QueryHandler(func(ctx context.Context, r rendering, query helper.Query) (*charts.Rendered, error) {
			if r.Lookups {
				r.Release.Find = func(ctx context.Context, wanted build.Wanted) (map[string]any, error) {
					return finder(ctx, query, wanted)
				}
			}
			return renderer.Render(ctx, *r.Release)
		}),
		FetchJob.Handler(renderer.Fetch),
	}
}

func finder(ctx context.Context, query helper.Query, wanted build.Wanted) (map[string]any, error) {
	var f found
	if err := query(ctx, wanted, &f); err != nil || len(f.Object) == 0 {
		return nil, err
	}
	// Integers must remain integers, or templates print them with exponents.
	var object map[string]any
	err := utiljson.Unmarshal(f.Object, &object)
	return object, err
}
