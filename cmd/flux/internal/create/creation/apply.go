package creation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/requests"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/reconcile"
)

// Print writes an object in the output format, as a YAML document by default.
func (c *Creation) Print(o *unstructured.Unstructured) error {
	if c.output != "" {
		return output.PrintObjects(c.App.Output(c.output), c.output, []unstructured.Unstructured{*o}, true, app.Templates(c.App))
	}
	text, err := output.YAML(o.Object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", kube.Describe(o), err)
	}
	end := ""
	if o.GetKind() == "Secret" {
		end = "\n" // as in the output of Flux 2
	}
	return c.App.Document("---\n" + string(text) + end)
}

// Show prints live objects if --output is set. It masks the data of Secrets.
func (c *Creation) Show(objects ...controllers.Object) error {
	if c.output == "" {
		return nil
	}
	var all []unstructured.Unstructured
	for _, o := range objects {
		shown := maps.Clone(o)
		if data, ok := shown["data"].(map[string]any); ok && shown["kind"] == "Secret" {
			masked := map[string]any{}
			for key := range data {
				masked[key] = "*****"
			}
			shown["data"] = masked
		}
		all = append(all, unstructured.Unstructured{Object: shown})
	}
	return output.PrintObjects(c.App.Output(c.output), c.output, all, len(all) == 1, app.Templates(c.App))
}

// Apply applies an object and reports the changed fields.
func (c *Creation) Apply(ctx context.Context, noun string, o *unstructured.Unstructured) (kube.Upserted, error) {
	client, err := c.App.Client()
	if err != nil {
		return kube.Upserted{}, err
	}
	c.App.UI.Action("applying %s", noun)
	done, err := kube.Upsert(ctx, client, o, c.DryRun != "")
	if err != nil {
		return done, c.Explain(err, o)
	}
	suffix := ""
	if c.DryRun != "" {
		suffix = " (server dry run)"
	}
	changes := done.Changes()
	switch {
	case done.Before == nil:
		c.App.UI.Success("%s created%s", noun, suffix)
	case len(changes) == 0:
		c.App.UI.Success("%s unchanged", noun)
	default:
		c.App.UI.Success("%s changed: %s%s", noun, strings.Join(changes, ", "), suffix)
	}
	if owner := kube.Label(done.Before, kube.BootstrapLabel); owner != "" && len(changes) > 0 {
		c.App.UI.Warning("Kustomization %q manages this object and will revert the change: commit the output of --export instead", owner)
	}
	return done, nil
}

// Explain adds a hint with the remedy to an error of the API server.
func (c *Creation) Explain(err error, o *unstructured.Unstructured) error {
	if apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces ") {
		return hint.Errorf(hint.Command("kubectl create namespace %s", o.GetNamespace()), "%w", err)
	}
	if apierrors.IsInvalid(err) && o.GetKind() == "Secret" && strings.Contains(err.Error(), "immutable") {
		return hint.Errorf(hint.Command("the type of a Secret is immutable: kubectl -n %s delete secret %s, then create it again", o.GetNamespace(), o.GetName()), "%w", err)
	}
	undeclared := strings.Contains(err.Error(), "field not declared in schema")
	if c.required != "" && (apierrors.IsInvalid(err) || undeclared) {
		return hint.Errorf(c.required+" or newer: see the version of the cluster with 'flux version'", "%w", err)
	}
	return err
}

// outdated reports whether a reconciliation must be requested for an unchanged object, because its
// Secret has changed, or because it is not ready and the cause may have been fixed.
func outdated(k controllers.Kind, done kube.Upserted, renewed bool) bool {
	if done.Before == nil || len(done.Changes()) > 0 || !k.Has(controllers.Reconcile) || k.Static != nil && k.Static(done.After) {
		return false
	}
	return renewed || k.Finished(done.After) && k.Ready(done.After).Status != "True"
}

// Await waits until the controller has reconciled the applied object or an
// attempt has failed.
func (c *Creation) Await(ctx context.Context, k controllers.Kind, done kube.Upserted, renewed bool) (controllers.Object, error) {
	ui, last := c.App.UI, done.After
	if k.Suspension.Is(last) {
		ui.Warning("the object is suspended and is not reconciled: %s", hint.Command("flux resume "+k.Noun()+" %s -n %s", c.Name, c.Namespace))
		return last, nil
	}
	ui.Waiting("waiting for %s reconciliation", NounOf(k))
	client, err := c.App.Client()
	if err != nil {
		return last, err
	}
	goal := reconcile.Goal{State: reconcile.Ready, Attempt: true}
	if outdated(k, done, renewed) {
		goal.Token = c.App.Now().Format(time.RFC3339Nano)
		if last, err = client.Annotate(ctx, done.Resource, c.Namespace, c.Name, map[string]any{controllers.RequestAnnotation: goal.Token}); err != nil {
			return last, fmt.Errorf("requesting a reconciliation: %w", err)
		}
	}
	shown := ""
	engine := reconcile.Waiter{
		Watches: reconcile.NewWatches(client), Goal: goal,
		Progress: func(p reconcile.Progress) {
			if message := k.Ready(p.Object).Message; k.Pending(p.Object) && message != shown {
				ui.Waiting("%s", message)
				shown = message
			}
		},
		Ended: func(reconcile.Result) {},
	}
	subject := objref.Target{Kind: k, Namespace: c.Namespace, Name: c.Name, Object: last}
	result := engine.Run(ctx, []objref.Target{subject})[0]
	return result.Last, c.outcome(client, result)
}

// outcome reports the result of the wait and returns an error unless the object is ready.
func (c *Creation) outcome(client *kube.Client, result reconcile.Result) error {
	k, last := result.Subject.Kind, result.Last
	if err := requests.Unready(c.App, result, result.Subject.String()); err != nil {
		var failure *report.UnreadyError
		if errors.As(err, &failure) {
			return report.Fail(c.Cmd.Context(), c.App, report.Diagnoser(c.App, client), failure)
		}
		return err
	}
	c.App.UI.Success("%s %s is ready", NounOf(k), c.Name)
	if revision := k.Result.String(last); revision != "" && k.Done != "" {
		c.App.UI.Success(k.Done, revision)
	}
	return nil
}
