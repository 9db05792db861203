package changes

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/web/egress"
	"github.com/fluxkit/flux/pkg/diff"
	"github.com/fluxkit/flux/pkg/diff/render"
	"github.com/fluxkit/flux/pkg/diff/verify"
)

// AddVerification adds the flags for image verification.
func (o *Options) AddVerification(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&o.verifyImages, "verify-images", false, "check that added images exist in their registries; private hosts require --allow-remote-bases")
	fs.StringSliceVar(&o.platforms, "verify-platforms", nil, "platforms that added images must support, with --verify-images, e.g. linux/amd64,linux/arm64")
}

// CheckVerification validates the flags for image verification.
func (o *Options) CheckVerification() error {
	if len(o.platforms) > 0 && !o.verifyImages {
		return hint.Errorf("add --verify-images", "--verify-platforms requires --verify-images")
	}
	return nil
}

// Verify checks added images in their registries.
func (o *Options) Verify(ctx context.Context, a *app.App, hosts []string, results []*diff.Result) error {
	if !o.verifyImages {
		return nil
	}
	access := registry.Access{Restrict: func(settings *http.Transport) http.RoundTripper { return egress.NewTransport(settings, hosts) }}
	line := a.UI.Progress(a.Now, "checking images")
	defer line.Done()
	return verify.Images(ctx, results, verify.Options{
		Platforms: o.platforms,
		PlatformsOf: func(ctx context.Context, image string) ([]string, error) {
			return registry.Platforms(ctx, image, access)
		},
	})
}

// ReportImages prints the images that are missing or could not be verified, and returns the error that
// sets the exit code: 2 if an image is unknown, else 1 if one is missing.
func ReportImages(a *app.App, results []*diff.Result) error {
	missing, unknown := 0, 0
	for _, section := range render.Sections(results) {
		seen := map[string]bool{}
		for _, c := range section.Changes() {
			for _, i := range c.Images {
				if i.Registry == nil || i.Registry.State == diff.ImageFound || seen[c.Object.String()+i.After] {
					continue
				}
				seen[c.Object.String()+i.After] = true
				if i.Registry.State == diff.ImageMissing {
					missing++
					a.UI.Failure("%s: image %s is missing: %s%s", c.Object, i.After, i.Registry.Reason, section.In())
					continue
				}
				unknown++
				a.UI.Failure("%s: image %s could not be verified: %s%s", c.Object, i.After, i.Registry.Reason, section.In())
			}
		}
	}
	switch {
	case unknown > 0:
		a.UI.Failure("images that could not be verified: %d; exiting with 2 because of --verify-images", unknown)
		return &clierr.ExitCodeError{Code: clierr.ExitUndetermined}
	case missing > 0:
		a.UI.Failure("missing images: %d; exiting with 1 because of --verify-images", missing)
		return &clierr.ExitCodeError{Code: clierr.ExitFailed}
	}
	return nil
}
