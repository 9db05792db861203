package diagnose

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// lostLease is the age of a lease, as a multiple of the lease duration, after which it has no
// holder.
const lostLease = 3

// leaseDuration is the lease duration of the Flux controllers. A leader that stops releases its lease: it
// removes its name and sets the duration to one second.
const leaseDuration = 35 * time.Second

// installation is the state of the controllers. It sends a list of their
// Deployments, of the pods of those that do not run, and of the leases if a
// controller may have no leader.
type installation struct {
	Doctor
	// down holds the failed controllers by name. blind describes why the controllers could not be
	// read.
	down  map[string]Finding
	blind string
	// crashing holds the controllers in crash loops that are available at present.
	crashing map[string]crash
	// leadersAsked is set once the leases of the controllers were read. uninstalled lists the
	// controllers that are not installed.
	leadersAsked bool
	uninstalled  []string
}

// read finds the failed controllers. If they cannot be read, it sets blind
// instead of returning an error.
func (s *installation) read(ctx context.Context, bearable func(error) bool) error {
	r := &Rollout{Client: s.Client, Namespace: s.Home}
	found, err := r.Look(ctx)
	switch {
	case err != nil && (apierrors.IsForbidden(err) || bearable(err)):
		s.blind = unseen(err) + ": the controllers in namespace " + s.Home
		return nil
	case err != nil:
		return err
	}
	names := controllers.Names(func(controllers.Controller) bool { return true })
	if !slices.ContainsFunc(names, func(name string) bool { return found[name] != nil }) {
		s.blind = s.vacant()
		return nil
	}
	var weak []controllers.ID
	var suspects []string
	for _, name := range names {
		deployment := found[name]
		t := deploymentID(s.Home, name)
		switch {
		case deployment == nil:
			s.down[name] = Finding{
				Object: t, Code: "controller-missing", Message: "the " + name + " is not installed",
				Remedies: install(name),
			}
		case wanted(deployment) == 0:
			s.down[name] = Finding{
				Object: t, Code: "controller-stopped", Message: "the " + name + " is scaled to zero",
				Remedies: []string{hint.Command("kubectl -n %s scale deployment %s --replicas=1", s.Home, name)},
			}
		case deployment.Status.AvailableReplicas == 0:
			weak = append(weak, t)
			s.down[name] = Finding{
				Object: t, Code: "controller-down", Message: "the " + name + " is not running",
				Remedies: []string{hint.Command("kubectl -n %s describe pods -l app=%s", s.Home, name)},
			}
		case interrupted(deployment):
			suspects = append(suspects, name)
		}
	}
	read := newWorkloads(s.Client)
	s.readCrashes(ctx, suspects, read)
	for _, t := range weak {
		troubles, _ := read.inNamespace(ctx, s.Home, []controllers.ID{t}) // the finding is valid without the cause
		for _, trouble := range troubles {
			f := s.down[t.Name]
			f.Message, f.Details = "the "+t.Name+" is not running: "+trouble.Message, trouble.logged()
			if trouble.Remedy != "" {
				f.Remedies = append([]string{trouble.Remedy}, f.Remedies[len(f.Remedies)-1:]...)
			}
			s.down[t.Name] = f
		}
		pods, _ := read.podsIn(ctx, s.Home) // was read for the troubles
		if f := s.down[t.Name]; brokenByChange(found[t.Name], pods) {
			f.Remedies = append(f.Remedies, hint.Command("if the last change of its template is the cause, undo it: kubectl -n %s rollout undo deployment %s", s.Home, t.Name))
			s.down[t.Name] = f
		}
	}
	return nil
}

// brokenByChange reports whether the current template of a Deployment, which has an earlier one, has never been rolled
// out completely. If updates conflict while a ReplicaSet is created, the condition is still that of the earlier one, whose
// name is in its message, and the pods are newer than the condition.
func brokenByChange(d *appsv1.Deployment, pods []*corev1.Pod) bool {
	number, err := strconv.Atoi(d.Annotations[revision])
	c, ok := deploymentCondition(d, appsv1.DeploymentProgressing)
	if err != nil || number < 2 || !ok {
		return false
	}
	return c.Reason != "NewReplicaSetAvailable" || strings.HasPrefix(c.Message, "ReplicaSet ") && slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		replicaSet := strconv.Quote(d.Name + "-" + p.Labels[hash])
		return owns(deploymentID(d.Namespace, d.Name), p) && c.LastUpdateTime.Before(&p.CreationTimestamp) && !strings.Contains(c.Message, replicaSet)
	})
}

// vacant returns the message for a namespace without controllers.
func (s *installation) vacant() string {
	return fmt.Sprintf("no controllers in namespace %s: set FLUX_SYSTEM_NAMESPACE if Flux runs in another one", s.Home)
}

// install returns the remedies for a controller that is not installed.
func install(name string) []string {
	if c, ok := controllers.Find(name); ok && c.Extra {
		return []string{"if Flux was bootstrapped, run flux bootstrap again with --components-extra=" + name, "otherwise install it: flux install --components-extra=" + name}
	}
	return []string{"if Flux was bootstrapped, run flux bootstrap again", "otherwise install it: flux install"}
}

// leaders finds controllers that are running without a leader.
func (s *installation) leaders(ctx context.Context) error {
	r := resource(coordinationv1.SchemeGroupVersion, "Lease")
	_, err := s.Client.List(ctx, r, kube.Selection{Namespace: s.Home}, func(o controllers.Object) error {
		name, ok := strings.CutSuffix(controllers.Name(o), "-leader-election")
		if _, known := controllers.Find(name); !ok || !known || s.down[name].Code != "" {
			return nil
		}
		text := func(field string) string { return controllers.Path{"spec." + field}.String(o) }
		renewed, err := time.Parse(time.RFC3339Nano, text("renewTime"))
		seconds, _ := time.ParseDuration(text("leaseDurationSeconds") + "s")
		last := fmt.Sprintf("the last leader, %s, renewed", text("holderIdentity"))
		if text("holderIdentity") == "" {
			seconds, last = leaseDuration, "the last leader released"
		}
		if err != nil || seconds == 0 || s.Now.Sub(renewed) < lostLease*seconds {
			return nil
		}
		s.down[name] = Finding{
			Object: deploymentID(s.Home, name), Code: "controller-leaderless",
			Message:  fmt.Sprintf("no pod of the %s is the leader: %s the lease at %s", name, last, renewed.UTC().Format(time.RFC3339)),
			Remedies: []string{hint.Command("kubectl -n %s rollout restart deployment %s", s.Home, name)},
		}
		return nil
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("listing the leases in namespace %q: %w", s.Home, err)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
