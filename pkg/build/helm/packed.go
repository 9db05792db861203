package helm

import (
	"bytes"
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/fluxkit/flux/pkg/build/charts"
)

// Fetch implements charts.Fetcher.
func (r *Renderer) Fetch(ctx context.Context, from charts.Chart) (*charts.Fetched, error) {
	packed, _, err := r.fetch(ctx, from)
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadArchive(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return &charts.Fetched{Version: c.Metadata.Version, Digest: digestOf(packed)}, nil
}
