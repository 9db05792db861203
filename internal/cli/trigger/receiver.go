package trigger

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/installation"
	"github.com/fluxkit/flux/internal/cli/objref"
	"github.com/fluxkit/flux/internal/cli/report"
	"github.com/fluxkit/flux/internal/input"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/webhook"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose"
)

// resolve takes what the command line does not give from the Receiver and its Secret.
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
	if err := t.callable(receiver); err != nil {
		return err
	}
	if err := t.takeType(receiver.Object); err != nil {
		return err
	}
	t.path = k.Result.String(receiver.Object)
	t.resources = resourcesOf(receiver.Object)
	if events, _ := (controllers.Path{"spec.events"}).Lookup(receiver.Object); t.request.Event == "" && t.typ.HasEvents() {
		t.request.Event = first(events)
	}
	if !t.typ.Signs || t.Asked(t.token) {
		return nil
	}
	t.request.Token, err = t.tokenOf(ctx, client, controllers.Path{"spec.secretRef.name"}.String(receiver.Object))
	return err
}

// callable refuses to call a Receiver that would refuse the call.
func (t *triggering) callable(receiver objref.Target) error {
	k, o := receiver.Kind, receiver.Object
	if k.Suspension.Is(o) {
		return clierr.WithHint(fmt.Sprintf("flux resume receiver %s -n %s", t.Name, t.Namespace), "%s is suspended and takes no calls", receiver)
	}
	if k.Ready(o).Status != "True" || k.Result.String(o) == "" {
		return clierr.WithHint(diagnose.LogsOf(receiver.Named()), "%s is not ready and takes no calls: %s", receiver, report.Condition(k, o))
	}
	return nil
}

// takeType takes the type of the Receiver, which one that is given has to be.
func (t *triggering) takeType(receiver controllers.Object) error {
	name := controllers.Path{"spec.type"}.String(receiver)
	if len(t.Given("type")) > 0 && name != t.typeName {
		return clierr.WithHint("leave out --type", "Receiver %s is of type %s, not %s", t.Name, name, t.typeName)
	}
	typ, ok := webhook.Find(name)
	if !ok {
		return fmt.Errorf("this version of flux does not know the type %q of Receiver %s", name, t.Name)
	}
	t.typ = typ
	return t.fits()
}

// tokenOf reads the token out of the Secret of the Receiver.
func (t *triggering) tokenOf(ctx context.Context, client *kube.Client, name string) (string, error) {
	secret, err := client.Get(ctx, installation.BuiltIn("v1", "Secret"), t.Namespace, name)
	if err != nil {
		return "", clierr.WithHint("give the token with --token-stdin", "reading the token of Receiver %s: %w", t.Name, err)
	}
	token, err := base64.StdEncoding.DecodeString(controllers.Path{"data.token"}.String(secret))
	if err != nil || len(token) == 0 {
		return "", clierr.WithHint("flux create secret receiver makes one with it", "Secret %s/%s has no token", t.Namespace, name)
	}
	return string(token), nil
}

// first is the first text of a list, "" where there is none.
func first(list any) string {
	if items, _ := list.([]any); len(items) > 0 {
		s, _ := items[0].(string)
		return s
	}
	return ""
}

// resourcesOf are the objects that a Receiver reconciles, as references.
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

// noControllerError says that nobody is there to take a call.
type noControllerError struct{ namespace string }

func (e *noControllerError) Error() string {
	return fmt.Sprintf("there is no pod of notification-controller in namespace %q", e.namespace)
}

// webhookPort is where notification-controller listens for calls.
const webhookPort = 9292

// forward reaches notification-controller by way of the API server. Every
// connection looks for a pod that is ready at the moment.
func (t *triggering) forward() (*http.Transport, error) {
	if err := input.Name(t.fluxNamespace); err != nil {
		return nil, fmt.Errorf("--flux-namespace: %w", err)
	}
	client, err := t.App.Client()
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			pod, err := readyPod(ctx, client, t.fluxNamespace)
			if err != nil {
				return nil, err
			}
			return client.Forward(ctx, t.fluxNamespace, pod, webhookPort)
		},
	}, nil
}

func readyPod(ctx context.Context, client *kube.Client, namespace string) (string, error) {
	var ready []string
	found := false
	selection := kube.Selection{Namespace: namespace, Labels: "app=notification-controller"}
	_, err := client.List(ctx, installation.BuiltIn("v1", "Pod"), selection, func(o controllers.Object) error {
		found = true
		if c, _ := controllers.FindCondition(o, "Ready"); c.Status == "True" {
			ready = append(ready, controllers.Name(o))
		}
		return nil
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("looking for notification-controller: %w", err)
	case !found:
		return "", &noControllerError{namespace}
	case len(ready) == 0:
		return "", fmt.Errorf("no pod of notification-controller in namespace %q is ready", namespace)
	}
	return ready[0], nil
}

// remedies say what may be wrong, by the answer of a webhook.
var remedies = map[int]string{
	http.StatusBadRequest:            "the request is not what the Receiver asks for: look at --type, --token, --event and --payload",
	http.StatusNotFound:              "no Receiver listens there: the name, --namespace and --token decide where one does",
	http.StatusRequestEntityTooLarge: "notification-controller takes 3 MiB at most",
	http.StatusInternalServerError:   "an object that the Receiver names cannot be asked to reconcile",
	http.StatusServiceUnavailable:    "the Receiver is suspended or not ready",
}

// explain says of a call that was not taken what may be wrong.
func (t *triggering) explain(ctx context.Context, err error) error {
	var refused *webhook.StatusError
	var nobody *noControllerError
	k, _ := controllers.FindKind("Receiver")
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("calling Receiver %s: %w; before that: %s", t.Name, context.Cause(ctx), err.Error())
	case errors.As(err, &refused):
		hint := remedies[refused.Code]
		if t.url == "" {
			hint = strings.TrimPrefix(hint+"; "+diagnose.LogsOf(controllers.Target{Kind: k.Kind, Namespace: t.Namespace, Name: t.Name}), "; ")
		}
		return clierr.WithHint(hint, "%w", err)
	case errors.As(err, &nobody):
		return clierr.WithHint("name its namespace with --flux-namespace, or the webhook's address with --url", "%w", err)
	case t.url != "":
		// What is said of connections elsewhere is about the Kubernetes API.
		return clierr.WithHint("check --url", "cannot reach the webhook at %s: %s", t.base.Host, err.Error())
	default:
		return fmt.Errorf("calling Receiver %s: %w", t.Name, err)
	}
}
