package verify_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/verify"
)

// asked records the images that a registry is asked for.
type asked struct {
	mu     sync.Mutex
	images map[string]int
}

func (a *asked) ask(_ context.Context, image string) ([]string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.images[image]++
	switch image {
	case "gone":
		return nil, fmt.Errorf("looking: %w", registry.ErrNoImage)
	case "down":
		return nil, errors.New("connection refused")
	case "none":
		return nil, nil
	}
	return []string{"linux/amd64", "linux/arm64/v8", "windows/amd64:10.0.20348.1"}, nil
}

func TestImages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		image     string
		platforms []string
		want      diff.ImageState
		times     int
	}{
		"found":                     {"web", nil, diff.ImageFound, 1},
		"missing":                   {"gone", nil, diff.ImageMissing, 1},
		"unreachable":               {"down", nil, diff.ImageUnknown, 1},
		"secret":                    {"web:*** (after)", nil, diff.ImageUnknown, 0},
		"variable":                  {"web:${tag}", nil, diff.ImageUnknown, 0},
		"platform":                  {"web", []string{"linux/amd64"}, diff.ImageFound, 1},
		"platform with a variant":   {"web", []string{"linux/arm64", "linux/arm64/v8"}, diff.ImageFound, 1},
		"platform with a version":   {"web", []string{"windows/amd64"}, diff.ImageFound, 1},
		"part of a platform":        {"web", []string{"linux/arm"}, diff.ImageMissing, 1},
		"other variant":             {"web", []string{"linux/arm64/v9"}, diff.ImageMissing, 1},
		"one of two platforms":      {"web", []string{"linux/amd64", "linux/s390x"}, diff.ImageMissing, 1},
		"platforms are not known":   {"none", []string{"linux/amd64"}, diff.ImageUnknown, 1},
		"no platforms are required": {"none", nil, diff.ImageFound, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := func(action diff.Action) diff.Change {
				return diff.Change{Action: action, Images: []diff.Image{{Container: "a", After: c.image}, {Container: "b", Before: "old"}, {Container: "c", Before: "old", After: c.image}}}
			}
			results := []*diff.Result{{Changes: []diff.Change{change(diff.Created), change(diff.Changed), change(diff.Skipped)}}, {Changes: []diff.Change{change(diff.Changed)}}}
			answers := &asked{images: map[string]int{}}
			if err := verify.Images(t.Context(), results, verify.Options{Platforms: c.platforms, PlatformsOf: answers.ask}); err != nil {
				t.Fatal(err)
			}
			var states []string
			for _, r := range results {
				for _, change := range r.Changes {
					for _, i := range change.Images {
						state := ""
						if i.Registry != nil {
							state = string(i.Registry.State)
						}
						states = append(states, state)
					}
				}
			}
			s := string(c.want)
			if d := cmp.Diff([]string{s, "", s, s, "", s, "", "", "", s, "", s}, states); d != "" {
				t.Error(d)
			}
			if answers.images[c.image] != c.times || answers.images["old"] != 0 {
				t.Errorf("asked for %v", answers.images)
			}
		})
	}
}

// TestLimit checks that an image beyond the limit is unknown.
func TestLimit(t *testing.T) {
	t.Parallel()
	var change diff.Change
	change.Action = diff.Created
	for i := range 501 {
		change.Images = append(change.Images, diff.Image{After: fmt.Sprintf("web:%d", i)})
	}
	answers := &asked{images: map[string]int{}}
	if err := verify.Images(t.Context(), []*diff.Result{{Changes: []diff.Change{change}}}, verify.Options{PlatformsOf: answers.ask}); err != nil {
		t.Fatal(err)
	}
	if len(answers.images) != 500 || change.Images[499].Registry.State != diff.ImageFound || change.Images[500].Registry.State != diff.ImageUnknown {
		t.Errorf("asked for %d images; the last: %+v", len(answers.images), change.Images[500].Registry)
	}
}
