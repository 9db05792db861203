package desired

import (
	"context"
	"errors"
	"io/fs"

	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/charts"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/mapped"
)

// Mapped returns the contents of sources with the mappings of the builder.
func (b *Builder) Mapped(otherwise repository.Contents) *mapped.Sources {
	return &mapped.Sources{Mappings: b.Mappings, Otherwise: otherwise}
}

// useMapped makes options find charts in mapped directories.
func (b *Builder) useMapped(options *charts.Options) {
	if len(b.Mappings) == 0 {
		return
	}
	sources := b.Mapped(nil)
	options.Local = sources.Chart
	find, unmapped := options.Find, options.Sources
	options.Sources = build.Once(func(ctx context.Context, source controllers.ID) (fs.FS, error) {
		tree, err := unmapped(ctx, source)
		if !errors.Is(err, build.ErrNotFound) {
			return tree, err
		}
		o, failed := find(ctx, source)
		if failed != nil {
			return nil, err // build.ErrNotFound
		}
		found, err := sources.Content(ctx, repository.Request{Source: source, Object: o})
		if err != nil || found.Artifact {
			return found.Files, err
		}
		return sourcetree.Select(ctx, []sourcetree.Part{{Tree: found.Files}}, sourcetree.IgnoreOf(o))
	})
}
