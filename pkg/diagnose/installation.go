package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/observe"
	"github.com/fluxkit/flux/pkg/diagnose/rollout"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// installation is the state of the controllers. It lists their Deployments, the pods of controllers that are not running, and the
// leases if a controller may have no leader.
type installation struct {
	cluster *observe.Cluster
	now     time.Time
	// down holds the failed controllers by name. unread describes why the controllers could not be read.
	down   map[string]rules.Finding
	unread string
	// scopes describes the objects that the Deployments of each controller watch.
	scopes map[string][]scope
	// leases maps the names of leases to their controllers.
	leases map[string]string
	// crashes holds the controllers in crash loops that are currently available.
	crashes map[string]crash
	// leasesRead is set once the leases of the controllers have been read. uninstalled lists the controllers that are not
	// installed.
	leasesRead  bool
	uninstalled []string
	// found holds the Deployments of the namespace by name.
	found map[string]*appsv1.Deployment
}

// crash is a controller in a crash loop, with the time of the last crash.
type crash struct {
	finding rules.Finding
	at      time.Time
	// updating is set if a pod with the previous template is still available because the pods with the current template crash.
	updating bool
}

func newInstallation(cluster *observe.Cluster, now time.Time) *installation {
	return &installation{cluster: cluster, now: now, down: map[string]rules.Finding{}, crashes: map[string]crash{}, scopes: map[string][]scope{}, leases: map[string]string{}}
}

// read finds the failed controllers. If they cannot be read, it sets unread instead of returning an error.
func (in *installation) read(ctx context.Context, tolerated func(error) bool) error {
	found, err := (&rollout.Waiter{Client: in.cluster.Client, Namespace: in.cluster.Home}).List(ctx)
	switch {
	case err != nil && (apierrors.IsForbidden(err) || tolerated(err)):
		in.unread = observe.Unread("the controllers in namespace "+in.cluster.Home, err)
		return nil
	case err != nil:
		return err
	}
	in.found = found
	names := controllers.Names(func(controllers.Controller) bool { return true })
	if !slices.ContainsFunc(names, func(name string) bool { return found[name] != nil }) {
		in.unread = in.empty()
		return nil
	}
	if found[controllers.OperatorName] != nil { // it may also run in another namespace
		names = append(names, controllers.OperatorName)
	}
	for _, name := range names {
		in.scopes[name] = scopesOf(name, found)
		if _, elects := controllers.Find(name); elects && found[name] != nil {
			in.leases[leaseOf(name, scopeOf(found[name]))] = name
		}
		switch d := found[name]; {
		case d == nil:
			in.fail(name, "controller-missing", "the "+name+" is not installed", install(name)...)
		case rollout.Replicas(d) == 0:
			in.fail(name, "controller-stopped", "the "+name+" is scaled to zero", hint.Command("kubectl -n %s scale deployment %s --replicas=1", in.cluster.Home, name))
		case d.Status.AvailableReplicas == 0:
			in.readStopped(ctx, d)
		case rollout.Interrupted(d) || !rollout.Complete(d):
			in.readCrashes(ctx, d)
		}
	}
	return nil
}

// empty returns the description of a namespace without controllers.
func (in *installation) empty() string {
	return fmt.Sprintf("no controllers in namespace %s: set FLUX_SYSTEM_NAMESPACE if Flux runs in another namespace", in.cluster.Home)
}

// fail sets the finding for a controller that is not working.
func (in *installation) fail(name, code, message string, fixes ...string) {
	in.down[name] = rules.Finding{Object: rollout.DeploymentID(in.cluster.Home, name), Code: code, Message: message, Fixes: fixes}
}

// install returns the fixes for a controller that is not installed.
func install(name string) []string {
	if c, ok := controllers.Find(name); ok && c.Extra {
		return []string{"if Flux was bootstrapped, run flux bootstrap again with --components-extra=" + name, "otherwise install it: flux install --components-extra=" + name}
	}
	return []string{"if Flux was bootstrapped, run flux bootstrap again", "otherwise install it: flux install"}
}

// readStopped sets the finding for a controller without available pods, with the reason if it is known.
func (in *installation) readStopped(ctx context.Context, d *appsv1.Deployment) {
	name, home := d.Name, in.cluster.Home
	in.fail(name, "controller-down", "the "+name+" is not running", describePods(home, name))
	f := in.down[name]
	problems, _ := rollout.InNamespace(ctx, in.cluster, home, []controllers.ID{f.Object})
	pods, _ := in.cluster.Pods(ctx, home)
	if started, is := rollout.Starting(d, pods, problems); is && in.now.Sub(started).Abs() < electionTime {
		f.Code, f.Message, f.Since = "controller-starting", "the "+name+" is starting", started
		in.down[name] = f
		return
	}
	for _, p := range problems {
		f.Message, f.Details = "the "+name+" is not running: "+p.Message, p.LogLines()
		if p.Remedy != "" {
			f.Fixes = []string{p.RemedyOfFlux(), describePods(home, name)}
		}
	}
	if rollout.NeverComplete(d, pods) {
		f.Fixes = append(f.Fixes, hint.Command("if the last change to the pod template is the cause, roll it back: kubectl -n %s rollout undo deployment %s", home, name))
	}
	in.down[name] = f
}

func describePods(namespace, name string) string {
	return hint.Command("kubectl -n %s describe pods -l %s", namespace, "app="+name)
}

// readCrashes detects a crash loop of a controller that is currently available. It ignores pods that cannot be read, because
// nothing else depends on them.
func (in *installation) readCrashes(ctx context.Context, d *appsv1.Deployment) {
	pods, err := in.cluster.Pods(ctx, in.cluster.Home)
	if err != nil {
		return
	}
	for _, c := range rollout.Crashes(ctx, in.cluster, d, pods, in.now) {
		in.crashes[d.Name] = crash{rules.Finding{
			Object: rollout.DeploymentID(in.cluster.Home, d.Name), Code: "controller-crashing",
			Message: "the " + d.Name + " is in a crash loop: " + c.Problem.Message, Details: c.Problem.LogLines(),
			Fixes: []string{
				cmp.Or(c.Problem.Remedy, "if the log shows which object crashes the controller, suspend it; report the crash"),
				hint.Command("kubectl -n %s logs %s --previous", in.cluster.Home, c.Pod),
			},
		}, c.At, d.Status.AvailableReplicas > 0 && !rollout.Complete(d)}
	}
}

// crashedSince returns the finding for a controller that has crashed since a reconciliation began. A zero time means that the
// start is unknown.
func (in *installation) crashedSince(controller string, since time.Time) (rules.Finding, bool) {
	c, ok := in.crashes[controller]
	return c.finding, ok && !c.at.Before(since)
}

// dropUnused drops the findings for missing controllers whose kinds have no objects.
func (in *installation) dropUnused(objects []controllers.ID) {
	used := map[string]bool{}
	for _, t := range objects {
		used[observe.KindOf(t).Controller] = true
	}
	for name, f := range in.down {
		if f.Code != "controller-missing" {
			continue
		}
		in.uninstalled = append(in.uninstalled, name)
		if !used[name] {
			delete(in.down, name)
		}
	}
}

// deletion returns the finding for an object that is being deleted. A Flux object waits for its controller.
func (in *installation) deletion(t controllers.ID, o controllers.Object) (rules.Finding, bool) {
	f, deleting := rules.Deletion(t, o, in.now)
	k, ofFlux := t.Flux()
	if !deleting || !ofFlux {
		return f, deleting
	}
	if down, is := in.down[k.Controller]; is {
		f.Details, f.Fixes = append(f.Details, down.Message), down.Fixes
		return f, true
	}
	if crashed, is := in.crashedSince(k.Controller, f.Since); is {
		f.Details, f.Fixes = append(append(f.Details, crashed.Message), crashed.Details...), crashed.Fixes
		return f, true
	}
	f.Fixes = append([]string{rules.Logs(t)}, rules.CheckOwners(kube.Finalizers(o))...)
	if failed, is := rules.FailedDeletion(k, o); is {
		f.Details = append([]string{rules.ConditionText(failed)}, f.Details...)
	}
	return f, true
}

// NotReady returns the root causes of controllers that have not become ready. Controllers with the same remedy share one cause,
// unless their containers have printed logs.
func NotReady(e *rollout.NotReadyError) Result {
	r := Result{Checked: len(e.Problems)}
	for _, p := range e.Problems {
		object := rollout.DeploymentID(e.Namespace, p.Name)
		same := func(c Cause) bool { return p.Remedy != "" && len(p.Log) == 0 && c.Root().Fixes[0] == p.RemedyOfFlux() }
		if i := slices.IndexFunc(r.Causes, same); i >= 0 {
			r.Causes[i].Also = append(r.Causes[i].Also, object)
			continue
		}
		fix := cmp.Or(p.RemedyOfFlux(), describePods(e.Namespace, p.Name))
		r.Causes = append(r.Causes, single(rules.Finding{Object: object, Code: "controller-down", Message: p.Message, Details: p.LogLines(), Fixes: []string{fix}}))
	}
	return r
}
