package isolated_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/isolated"
)

// echo is a renderer that returns the name of the release, fails, or exits.
type echo struct{}

func (echo) Fetch(context.Context, charts.Chart) (*charts.Fetched, error) { return nil, nil }

func (echo) Render(ctx context.Context, r charts.Release) (*charts.Rendered, error) {
	switch r.Name {
	case "fail":
		return nil, errors.New("as asked")
	case "look":
		var seen []string
		for _, name := range []string{"there", "gone", "denied"} {
			found, err := r.Find(ctx, build.Wanted{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: name})
			seen = append(seen, fmt.Sprintf("%s: %v %v", name, found, err))
		}
		return &charts.Rendered{Manifests: seen}, nil
	case "hang":
		<-ctx.Done()
	case "environment":
		return &charts.Rendered{Manifests: os.Environ()}, nil
	case "end":
		os.Exit(3)
	}
	return &charts.Rendered{Manifests: []string{r.Name}}, nil
}

// TestMain is the helper program if it has the arguments of one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == string(isolated.RenderJob) {
		if err := helper.Serve(context.Background(), isolated.Handlers(echo{}), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	if err := os.Setenv("CI_JOB_TOKEN", "canary"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func newCharts() *isolated.Charts {
	return isolated.NewCharts(&helper.Pool{Find: os.Executable, LookupEnv: os.LookupEnv}, "cache")
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	got, err := newCharts().Render(t.Context(), charts.Release{Name: "environment"})
	if err != nil {
		t.Fatal(err)
	}
	path := false
	for _, variable := range got.Manifests {
		path = path || strings.HasPrefix(variable, "PATH=")
		if strings.Contains(variable, "canary") {
			t.Errorf("the helper gets %s", variable)
		}
	}
	if !path {
		t.Errorf("the helper has no PATH: %q", got.Manifests)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	p := newCharts()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			name := fmt.Sprintf("release-%d", i)
			got, err := p.Render(context.Background(), charts.Release{Name: name})
			if err != nil || got.Manifests[0] != name {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		})
	}
	wg.Wait()
	if _, err := p.Render(context.Background(), charts.Release{Name: "fail"}); err == nil || err.Error() != "as asked" {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestLookups(t *testing.T) {
	t.Parallel()
	p := newCharts()
	find := func(_ context.Context, w build.Wanted) (map[string]any, error) {
		switch w {
		case build.Wanted{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: "there"}:
			return map[string]any{"count": int64(12345678)}, nil
		case build.Wanted{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: "gone"}:
			return nil, nil
		}
		return nil, errors.New("not allowed")
	}
	want := []string{"there: map[count:12345678] <nil>", "gone: map[] <nil>", "denied: map[] not allowed"}
	var wg sync.WaitGroup
	for range 30 { // more than are rendered at once
		wg.Go(func() {
			got, err := p.Render(context.Background(), charts.Release{Name: "look", Find: find})
			if err != nil {
				t.Error(err)
				return
			}
			if d := cmp.Diff(want, got.Manifests); d != "" {
				t.Errorf("seen (-want +got):\n%s", d)
			}
		})
	}
	wg.Wait()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestProgramEnds(t *testing.T) {
	t.Parallel()
	p := newCharts()
	for range 2 { // also when it has ended before
		_, err := p.Render(context.Background(), charts.Release{Name: "end"})
		if err == nil || !strings.Contains(err.Error(), "flux-helper exited before it finished rendering chart") {
			t.Error(err)
		}
	}
	if err := p.Close(); err == nil {
		t.Error("its exit code was lost")
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := newCharts()
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := p.Render(ctx, charts.Release{Name: "first"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := p.Render(ctx, charts.Release{Name: "hang"}); err == nil {
			t.Error("it went on")
		}
	})
	cancel()
	wg.Wait()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	gone := errors.New("nowhere")
	p := isolated.NewCharts(&helper.Pool{Find: func() (string, error) { return "", gone }}, "")
	if _, err := p.Render(context.Background(), charts.Release{}); !errors.Is(err, gone) {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
