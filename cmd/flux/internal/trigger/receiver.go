package trigger

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/report"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/objref"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/webhook"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/rules"
)

// resolve sets the fields of the request from the Receiver and its Secret.
func (t *triggering) resolve(ctx context.Context) error {
	client, err := t.App.Client()
	if err != nil {
		return err
	}
	k, _ := controllers.FindKind("Receiver")
	receiver := objref.Target{Kind: k, Namespace: t.Namespace, Name: t.Name}
	if err := receiver.Read(ctx, client); err != nil {
		return err
	}
	if err := t.checkReady(receiver); err != nil {
		return err
	}
	if err := t.setType(receiver.Object); err != nil {
		return err
	}
	t.client, t.receiver = client, receiver.Object
	t.path = k.Result.String(receiver.Object)
	t.resources = resourcesOf(receiver.Object)
	if events, _ := (controllers.Path{"spec.events"}).Lookup(receiver.Object); t.request.Event == "" && t.typ.HasEvents() {
		t.request.Event = first(events)
	}
	if !t.typ.Signs || t.SecretGiven(t.token) {
		return nil
	}
	t.request.Token, err = t.tokenOf(ctx, client, controllers.Path{"spec.secretRef.name"}.String(receiver.Object))
	return err
}

// checkReady returns an error if the Receiver is suspended or not ready, since its
// webhook would reject the request.
func (t *triggering) checkReady(receiver objref.Target) error {
	k, o := receiver.Kind, receiver.Object
	if k.Suspension.Is(o) {
		return hint.Errorf(hint.Command("flux resume receiver %s -n %s", t.Name, t.Namespace), "%s is suspended and rejects requests", receiver)
	}
	if k.Ready(o).Status != "True" || k.Result.String(o) == "" {
		return hint.Errorf(rules.Logs(receiver.Named()), "%s is not ready and rejects requests: %s", receiver, report.Condition(k, o))
	}
	return nil
}

// setType sets the type of the Receiver, which --type must match.
func (t *triggering) setType(receiver controllers.Object) error {
	name := controllers.Path{"spec.type"}.String(receiver)
	if len(t.Given("type")) > 0 && name != t.typeName {
		return hint.Errorf("remove --type", "Receiver %s is of type %s, not %s", t.Name, name, t.typeName)
	}
	typ, ok := webhook.Find(name)
	if !ok {
		return fmt.Errorf("unknown type %q of Receiver %s: not supported by this version of flux", name, t.Name)
	}
	t.typ = typ
	return t.checkType()
}

// tokenOf returns the token in the Secret of the Receiver.
func (t *triggering) tokenOf(ctx context.Context, client *kube.Client, name string) (string, error) {
	secret, err := client.Get(ctx, kube.BuiltIn("v1", "Secret"), t.Namespace, name)
	if err != nil {
		return "", hint.Errorf("set the token with --token-stdin", "reading the token of Receiver %s: %w", t.Name, err)
	}
	token, err := base64.StdEncoding.DecodeString(controllers.Path{"data.token"}.String(secret))
	if err != nil || len(token) == 0 {
		return "", hint.Errorf("create the Secret with 'flux create secret receiver'", "Secret %s/%s has no token", t.Namespace, name)
	}
	return string(token), nil
}

// first returns the first string of a list, or "".
func first(list any) string {
	if items, _ := list.([]any); len(items) > 0 {
		s, _ := items[0].(string)
		return s
	}
	return ""
}

// resourcesOf returns references to the objects that a Receiver reconciles.
func resourcesOf(receiver controllers.Object) []string {
	var names []string
	list, _ := controllers.Path{"spec.resources"}.Lookup(receiver)
	items, _ := list.([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		kind, _ := m["kind"].(string)
		name, _ := m["name"].(string)
		if namespace, _ := m["namespace"].(string); namespace != "" {
			name += "." + namespace
		}
		names = append(names, kind+"/"+name)
	}
	return names
}

// missesResource reports whether the webhook responded with 500 because a resource of the Receiver does not exist.
func (t *triggering) missesResource(ctx context.Context, err error) bool {
	if t.absent.Name != "" { // detected during the retries
		return true
	}
	var rejected *webhook.StatusError
	if t.client == nil || !errors.As(err, &rejected) || rejected.Code != http.StatusInternalServerError {
		return false
	}
	k, _ := controllers.FindKind("Receiver")
	for _, r := range k.Refs {
		for _, resource := range r.Targets(t.receiver) {
			kind, ok := resource.Flux()
			if !ok || resource.Name == "*" {
				continue
			}
			if _, err := t.client.GetKind(ctx, kind, resource.Namespace, resource.Name); apierrors.IsNotFound(err) {
				t.absent = resource
				return true
			}
		}
	}
	return false
}

// noControllerError is returned when notification-controller has no pod.
type noControllerError struct{ namespace string }

func (e *noControllerError) Error() string {
	return fmt.Sprintf("no pods of notification-controller found in namespace %q", e.namespace)
}

// webhookPort is the port of notification-controller for webhooks.
const webhookPort = 9292

// forward returns a server whose connections the API server forwards to notification-controller. Each connection selects
// a ready pod.
func (t *triggering) forward() (web.Server, error) {
	if err := syntax.Name(t.fluxNamespace); err != nil {
		return web.Server{}, fmt.Errorf("--flux-namespace: %w", err)
	}
	client, err := t.App.Client()
	return web.Server{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		pod, err := readyPod(ctx, client, t.fluxNamespace)
		if err != nil {
			return nil, err
		}
		return client.Pods().Forward(ctx, t.fluxNamespace, pod, webhookPort)
	}}, err
}

func readyPod(ctx context.Context, client *kube.Client, namespace string) (string, error) {
	var ready []string
	found := false
	selection := kube.Selection{Namespace: namespace, Labels: "app=notification-controller"}
	_, err := client.List(ctx, kube.BuiltIn("v1", "Pod"), selection, func(o controllers.Object) error {
		found = true
		if c, _ := controllers.FindCondition(o, "Ready"); c.Status == "True" {
			ready = append(ready, controllers.Name(o))
		}
		return nil
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("listing the pods of notification-controller: %w", err)
	case !found:
		return "", &noControllerError{namespace}
	case len(ready) == 0:
		return "", fmt.Errorf("no ready pods of notification-controller in namespace %q", namespace)
	}
	return ready[0], nil
}

// remedies maps the status codes of a webhook to hints.
var remedies = map[int]string{
	http.StatusBadRequest:            "the Receiver rejected the request: check --type, --token, --event and --payload",
	http.StatusNotFound:              "no Receiver has this path: check the name, --namespace and --token, which determine it",
	http.StatusRequestEntityTooLarge: "notification-controller accepts at most 3 MiB",
	http.StatusInternalServerError:   "notification-controller cannot request the reconciliation of a resource of the Receiver",
	http.StatusServiceUnavailable:    "the Receiver is suspended or not ready",
}

// explain adds a hint with the probable cause to the error of a request.
func (t *triggering) explain(ctx context.Context, err error) error {
	var rejected *webhook.StatusError
	var noController *noControllerError
	k, _ := controllers.FindKind("Receiver")
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("calling Receiver %s: %w; previous error: %s", t.Name, context.Cause(ctx), err.Error())
	case t.missesResource(ctx, err):
		return hint.Errorf(fmt.Sprintf("correct .spec.resources of Receiver %s, or create %s", t.Name, t.absent), "%w: %s in .spec.resources does not exist", err, t.absent)
	case errors.As(err, &rejected):
		remedy := remedies[rejected.Code]
		if t.url == "" {
			remedy = strings.TrimPrefix(remedy+"; "+rules.Logs(k.ID(t.Namespace, t.Name)), "; ")
		}
		return hint.Errorf(remedy, "%w", err)
	case errors.As(err, &noController):
		return hint.Errorf("set the namespace of notification-controller with --flux-namespace, or the URL of the webhook with --url", "%w", err)
	case t.url != "":
		// The error is not wrapped: a generic hint would refer to the Kubernetes API.
		return hint.Errorf("check --url", "cannot reach the webhook at %s: %s", t.base.Host, err.Error())
	default:
		return fmt.Errorf("calling Receiver %s: %w", t.Name, err)
	}
}
