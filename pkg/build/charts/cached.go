package charts

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build/recall"
)

// Cached caches the results of a Renderer that depend only on the release.
type Cached struct {
	Renderer
	Cache recall.Cache
}

// Render implements Renderer.
func (c Cached) Render(ctx context.Context, release Release) (*Rendered, error) {
	key, ok := cacheKey(&release)
	if !ok {
		return c.Renderer.Render(ctx, release)
	}
	if text, ok := c.Cache.Get(key); ok {
		rendered := &Rendered{}
		if json.Unmarshal(text, rendered) == nil {
			return rendered, nil
		}
	}
	rendered, err := c.Renderer.Render(ctx, release)
	if err != nil || rendered.Varies {
		return rendered, err
	}
	if slices.ContainsFunc(slices.Concat(rendered.CRDs, rendered.Manifests, rendered.Hooks), secrets().MatchString) {
		return rendered, nil
	}
	if text, err := json.Marshal(rendered); err == nil {
		c.Cache.Put(key, text)
	}
	return rendered, nil
}

// cacheKey returns the key of a release. It returns false if something else may change the result, or if the release contains
// secret values.
func cacheKey(r *Release) (string, bool) {
	access := r.Chart.Access
	if !r.Chart.Fixed() || r.Find != nil || r.Secret || access.Username+access.Password != "" || len(access.CA)+len(access.Cert)+len(access.Key) > 0 {
		return "", false
	}
	short := *r
	short.Chart.Files = maps.Clone(r.Chart.Files)
	for name, content := range short.Chart.Files {
		digest := sha256.Sum256(content)
		short.Chart.Files[name] = digest[:]
	}
	if r.Chart.Archive != nil {
		digest := sha256.Sum256(r.Chart.Archive)
		short.Chart.Archive = digest[:]
	}
	key, err := recall.Key("helm", short)
	return key, err == nil
}

// secrets matches documents that may contain a Secret.
var secrets = lazy.Regexp(`\bkind["']?\s*:[\s|>-]*["']?Secret(List)?\b`)
