package installflags

import (
	"context"
	"errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/release"
	"github.com/fluxkit/flux/manifests"
	"github.com/fluxkit/flux/pkg/controllers"
)

// latest selects the latest release of Flux, as in Flux 2.9.
const latest = "latest"

// render returns the manifests of the selected version, embedded or from the release.
func (m *Manifests) render(ctx context.Context, a *app.App) (*manifests.Set, error) {
	o := m.options
	if o.Version != latest {
		set, err := manifests.Render(o)
		if !errors.Is(err, manifests.ErrOtherVersion) {
			return set, err
		}
	}
	ctx, cancel := a.WithTimeout(ctx)
	defer cancel()
	agent := "flux/" + a.Build.Version
	version, err := m.release(ctx, a, agent)
	if err != nil {
		return nil, err
	}
	if d, embedded := controllers.FindDistribution(version); embedded {
		o.Version = d.Version
		return manifests.Render(o)
	}
	a.UI.Action("downloading the manifests of Flux %s", version)
	released, err := release.Fetch(ctx, agent, version)
	if err != nil {
		return nil, err
	}
	if released.Unverified {
		a.UI.Warning("Flux %s has no published checksum: its manifests are not verified", version)
	}
	return manifests.FromBundle(released.Archive, version, o)
}

// release returns the version of the selected release with a leading "v".
func (m *Manifests) release(ctx context.Context, a *app.App, agent string) (string, error) {
	if m.options.Version != latest {
		return release.Normalize(m.options.Version)
	}
	a.UI.Action("finding the latest release of Flux")
	return release.Latest(ctx, agent)
}
