// Package isolated runs Helm and kustomize in the helper process, where their memory is limited,
// and which ends with flux.
package isolated

import (
	"context"
	"encoding/json"
	"os"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/pkg/build"
)

// RenderJob is the job that renders charts, and the first argument of its process. The second one
// is the folder of the chart cache.
const RenderJob = "render"

// Charts implements build.Renderer in a helper process.
type Charts struct{ process *helper.Process }

// NewCharts returns a renderer that keeps charts in the folder cache.
func NewCharts(find func() (string, error), cache string, report func(line string)) *Charts {
	return &Charts{&helper.Process{
		Find: find, Arguments: []string{RenderJob, cache}, Report: report,
		Environment: func(context.Context) ([]string, error) {
			return helper.Environment(os.LookupEnv, chartVariables()...), nil //nolint:forbidigo // the process gets named variables of this one
		},
	}}
}

// chartVariables returns the environment variables of a process that renders charts: locations of
// files, network settings, and the registries of "docker login". Charts decide what the process
// does, and must not read the tokens of a pipeline.
func chartVariables() []string {
	return append([]string{
		"PATH", "HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE",
		"USERPROFILE", "LOCALAPPDATA", // Windows
	}, helper.Network()...)
}

// rendering is the input of RenderJob.
type rendering struct {
	Release *build.Release `json:"release"`
	// Lookups is set if the templates may look up objects.
	Lookups bool `json:"lookups,omitempty"`
}

// found is an object that a template looked up; it is empty if the object does not exist.
type found struct {
	Object json.RawMessage `json:"object,omitempty"`
}

// Render implements build.Renderer.
func (c *Charts) Render(ctx context.Context, release build.Release) (*build.Rendered, error) {
	var rendered *build.Rendered
	err := c.process.Do(ctx, helper.Call{
		Job: RenderJob, Title: "rendering chart " + release.Chart.Name, Input: rendering{&release, release.Find != nil},
		Answer: func(question json.RawMessage) (any, error) { return lookUp(ctx, release.Find, question) },
	}, &rendered)
	return rendered, err
}

func lookUp(ctx context.Context, find build.Finder, question json.RawMessage) (any, error) {
	var wanted build.Wanted
	if err := json.Unmarshal(question, &wanted); err != nil {
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
const FetchJob = "fetch"

// Fetch implements build.ChartFetcher.
func (c *Charts) Fetch(ctx context.Context, chart build.Chart) (*build.Fetched, error) {
	var fetched *build.Fetched
	err := c.process.Do(ctx, helper.Call{Job: FetchJob, Title: "fetching chart " + chart.Name, Input: chart}, &fetched)
	return fetched, err
}

// Fetch returns the job that fetches charts with a fetcher.
func Fetch(fetcher build.ChartFetcher) helper.Job {
	return func(ctx context.Context, input json.RawMessage, _ helper.Ask) (any, error) {
		var chart build.Chart
		if err := json.Unmarshal(input, &chart); err != nil {
			return nil, err
		}
		return fetcher.Fetch(ctx, chart)
	}
}

// Close stops the helper process.
func (c *Charts) Close() error { return c.process.Close() }

// Render returns the job that renders charts with a renderer.
func Render(renderer build.Renderer) helper.Job {
	return func(ctx context.Context, input json.RawMessage, ask helper.Ask) (any, error) {
		var r rendering
		if err := json.Unmarshal(input, &r); err != nil {
			return nil, err
		}
		if r.Lookups {
			r.Release.Find = func(ctx context.Context, wanted build.Wanted) (map[string]any, error) {
				return finder(ctx, ask, wanted)
			}
		}
		rendered, err := renderer.Render(ctx, *r.Release)
		if err != nil {
			return nil, err
		}
		return rendered, renderedWithin(rendered)
	}
}

func finder(ctx context.Context, ask helper.Ask, wanted build.Wanted) (map[string]any, error) {
	var f found
	if err := ask(ctx, wanted, &f); err != nil || len(f.Object) == 0 {
		return nil, err
	}
	// Integers must remain integers, or templates print them with exponents.
	var object map[string]any
	err := utiljson.Unmarshal(f.Object, &object)
	return object, err
}

// outputMax is the maximum size of the output of one build or one chart.
const outputMax = 64 << 20

func within(title string, size int) error {
	if size > outputMax {
		return &budget.ExceededError{Fact: "the output of " + title + " is larger than " + budget.Size(outputMax)}
	}
	return nil
}

func renderedWithin(r *build.Rendered) error {
	size := 0
	for _, part := range [][]string{r.CRDs, r.Manifests, r.Hooks} {
		for _, document := range part {
			size += len(document)
		}
	}
	return within("the chart", size)
}
