// Package verify checks that the images in the changes of a diff exist in their registries.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/pkg/diff"
)

// Limits of the requests: the images are untrusted input.
const (
	atOnce    = 8
	maxImages = 500
	timeout   = 30 * time.Second
)

// Options configures the image check.
type Options struct {
	// Platforms lists the platforms that each image must support, such as linux/amd64.
	Platforms []string
	// PlatformsOf returns the platforms of an image, see registry.Platforms.
	PlatformsOf func(ctx context.Context, image string) ([]string, error)
}

// Images checks each newly referenced image once, and records the checks in the results.
func Images(ctx context.Context, results []*diff.Result, o Options) error {
	var wanted []string
	each(results, func(i *diff.Image) {
		if !slices.Contains(wanted, i.After) {
			wanted = append(wanted, i.After)
		}
	})
	answers := map[string]*diff.ImageCheck{}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for n, image := range wanted {
		g.Go(func() error {
			answer := &diff.ImageCheck{State: diff.ImageUnknown, Reason: fmt.Sprintf("not checked: the limit is %d images", maxImages)}
			if n < maxImages {
				answer = o.check(gctx, image)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[image] = answer
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	each(results, func(i *diff.Image) { i.Registry = answers[i.After] })
	return nil
}

// each calls do for each newly referenced image.
func each(results []*diff.Result, do func(*diff.Image)) {
	for _, c := range diff.Each(results) {
		for i := range c.Images {
			if c.Different() && c.Images[i].After != "" {
				do(&c.Images[i])
			}
		}
	}
}

// check queries the registry of an image.
func (o Options) check(ctx context.Context, image string) *diff.ImageCheck {
	unknown := func(reason string) *diff.ImageCheck {
		return &diff.ImageCheck{State: diff.ImageUnknown, Reason: reason}
	}
	switch {
	case strings.Contains(image, "***"):
		return unknown("not checked: the reference contains a value of a Secret")
	case strings.Contains(image, "${"):
		return unknown("not checked: the reference contains a variable without a value")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	platforms, err := o.PlatformsOf(ctx, image)
	switch {
	case errors.Is(err, registry.ErrNoImage), errors.Is(err, registry.ErrInvalidImage):
		return &diff.ImageCheck{State: diff.ImageMissing, Reason: redact.Text(err.Error())}
	case err != nil:
		return unknown(redact.Text(err.Error()))
	}
	check := &diff.ImageCheck{State: diff.ImageFound, Platforms: platforms}
	for _, wanted := range o.Platforms {
		switch {
		case len(platforms) == 0:
			return unknown("the image manifest declares no platform")
		case !slices.ContainsFunc(platforms, func(p string) bool {
			return p == wanted || strings.HasPrefix(p, wanted+"/") || strings.HasPrefix(p, wanted+":")
		}):
			check.State, check.Reason = diff.ImageMissing, "no "+wanted+": the image is for "+strings.Join(platforms, ", ")
			return check
		}
	}
	return check
}
