package diagnose

import (
	"context"
	"errors"
	"maps"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
)

// Controllers is the state of the controllers at one time.
type Controllers struct {
	// Version is the version of Flux, or "" if it is unknown.
	Version string
	// Ready is the number of controllers with an available pod. Total is the number of installed controllers.
	Ready, Total int
	// Unread describes why the controllers could not be read, or is "".
	Unread string

	state *installation
}

// Controllers reads the state of the controllers. It returns an error only if ctx is canceled.
func (d Diagnoser) Controllers(ctx context.Context) (Controllers, error) {
	in := d.begin().installation
	if err := in.read(ctx, func(err error) bool { return !errors.Is(err, context.Canceled) }); err != nil {
		return Controllers{}, err
	}
	c := Controllers{Unread: in.unread, state: in}
	for name, deployment := range in.found {
		if _, is := controllers.Find(name); !is && name != controllers.OperatorName {
			continue
		}
		if c.Total++; deployment.Status.AvailableReplicas > 0 {
			c.Ready++
		}
		if version := deployment.Labels[kube.VersionLabel]; c.Version == "" || name == "source-controller" {
			c.Version = version
		}
	}
	return c, nil
}

// Given diagnoses all of the given objects without requests, so causes have no details about pods, files and events. hidden
// returns the reason why an object that is not among them is unknown, or nil if it does not exist.
func (d Diagnoser) Given(objects []controllers.Object, c Controllers, hidden func(controllers.ID) error) Result {
	s := d.begin()
	if c.state != nil {
		in := *c.state
		in.now, in.down = d.Now, maps.Clone(in.down)
		s.installation = &in
	}
	s.use(observe.Given(objects, hidden))
	s.installation.dropUnused(s.snapshot.IDs())
	s.snapshot.ConnectSurvey(func(controller string) bool {
		_, down := s.installation.down[controller]
		return down
	})
	r := s.evaluation.everything(Scope{})
	r.limit(0, d.Now)
	r.separate(0, d.Now)
	return r
}
