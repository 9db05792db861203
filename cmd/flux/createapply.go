package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// print writes an object that was not applied.
func (c *creation) print(o *unstructured.Unstructured) error {
	if c.output != "" {
		return output.PrintObjects(c.app.out, c.output, []unstructured.Unstructured{*o}, true)
	}
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", kube.Describe(o), err)
	}
	end := ""
	if o.GetKind() == "Secret" {
		end = "\n" // as Flux has always written Secrets
	}
	return c.app.printf("---\n%s%s", text, end)
}

// show prints an object as the cluster has it, where that is asked for. The
// values of a Secret are not repeated.
func (c *creation) show(o controllers.Object) error {
	if c.output == "" {
		return nil
	}
	shown := maps.Clone(o)
	if data, ok := shown["data"].(map[string]any); ok && shown["kind"] == "Secret" {
		masked := map[string]any{}
		for key := range data {
			masked[key] = "*****"
		}
		shown["data"] = masked
	}
	return output.PrintObjects(c.app.out, c.output, []unstructured.Unstructured{{Object: shown}}, true)
}

// apply makes the cluster have an object and says what that has changed.
func (c *creation) apply(ctx context.Context, noun string, o *unstructured.Unstructured) (kube.Upserted, error) {
	client, err := c.app.cluster()
	if err != nil {
		return kube.Upserted{}, err
	}
	c.app.ui.Action("applying %s", noun)
	done, err := client.Upsert(ctx, o, c.dryRun != "")
	if err != nil {
		return done, c.explain(err, o)
	}
	how := ""
	if c.dryRun != "" {
		how = " (dry run: the cluster keeps nothing)"
	}
	changes := done.Changes()
	switch {
	case done.Before == nil:
		c.app.ui.Success("%s created%s", noun, how)
	case len(changes) == 0:
		c.app.ui.Success("%s unchanged", noun)
	default:
		c.app.ui.Success("%s changed: %s%s", noun, strings.Join(changes, ", "), how)
	}
	if owner := kube.Label(done.Before, kube.BootstrapLabel); owner != "" && len(changes) > 0 {
		c.app.ui.Warning("Kustomization %q manages it and will change it back: commit what --export prints instead", owner)
	}
	return done, nil
}

// explain adds the way out to what a server refuses.
func (c *creation) explain(err error, o *unstructured.Unstructured) error {
	if apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces ") {
		return hinted(fmt.Sprintf("kubectl create namespace %s", o.GetNamespace()), "%w", err)
	}
	if apierrors.IsInvalid(err) && o.GetKind() == "Secret" && strings.Contains(err.Error(), "immutable") {
		return hinted(fmt.Sprintf("a Secret's type cannot change: kubectl -n %s delete secret %s, then create it again", o.GetNamespace(), o.GetName()), "%w", err)
	}
	return err
}

// outdated tells whether an object that was left unchanged says nothing of how
// things are now, until it is reconciled anew: a Secret that was renewed is no
// change of the object, and what made it fail may be mended elsewhere.
func outdated(k controllers.Kind, done kube.Upserted, renewed bool) bool {
	if done.Before == nil || len(done.Changes()) > 0 || !k.Has(controllers.Reconcile) || k.Static != nil && k.Static(done.After) {
		return false
	}
	return renewed || k.Finished(done.After) && k.Ready(done.After).Status != "True"
}

// await watches until the controller has come to an end with what was applied.
func (c *creation) await(ctx context.Context, k controllers.Kind, done kube.Upserted, renewed bool) (controllers.Object, error) {
	ui, last := c.app.ui, done.After
	if k.Suspension.Is(last) {
		ui.Warning("it is suspended, so nobody looks at it: flux resume %s %s -n %s", k.Noun(), c.name, c.namespace)
		return last, nil
	}
	ui.Waiting("waiting for %s reconciliation", nounOf(k))
	client, err := c.app.cluster()
	if err != nil {
		return last, err
	}
	ended := k.Finished
	if outdated(k, done, renewed) {
		token := c.app.now().Format(time.RFC3339Nano)
		if last, err = client.Annotate(ctx, done.Resource, c.namespace, c.name, map[string]any{requestAnnotation: token}); err != nil {
			return last, fmt.Errorf("asking for a reconciliation: %w", err)
		}
		ended = func(o controllers.Object) bool { return k.Settled(o, token) }
	}
	if !ended(last) {
		version, told := controllers.Path{"metadata.resourceVersion"}.String(last), ""
		err = client.Follow(ctx, done.Resource, kube.Selection{Namespace: c.namespace, Name: c.name}, version, func(e kube.Event) (bool, error) {
			if e.Deleted {
				return false, fmt.Errorf("%s %s/%s was deleted while it was waited for", k.Kind, c.namespace, c.name)
			}
			last = e.Object
			if message := k.Ready(last).Message; k.Pending(last) && message != told {
				ui.Waiting("%s", message)
				told = message
			}
			return ended(last), nil
		})
	}
	return last, c.outcome(client, k, last, err)
}

// outcome says how the wait has ended.
func (c *creation) outcome(client *kube.Client, k controllers.Kind, last controllers.Object, err error) error {
	t := target{kind: k, namespace: c.namespace, name: c.name}
	var failure *unreadyError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		failure = unready(t, last, "%s", c.app.timedOut(t.named(), "become ready", condition(k, last)))
		failure.late = true
	case err != nil:
		return err
	case k.Ready(last).Status != "True":
		failure = unready(t, last, "%s is not ready: %s", t, condition(k, last))
	}
	if failure != nil {
		return c.app.failed(c.cmd.Context(), c.app.doctor(client), failure)
	}
	c.app.ui.Success("%s %s is ready", nounOf(k), c.name)
	if result := k.Result.String(last); result != "" && k.Done != "" {
		c.app.ui.Success(k.Done, result)
	}
	return nil
}
