// Package fault injects faults into a sandbox. They end with the test step.
package fault

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/sandbox"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Fault is a fault: exactly one field is set.
type Fault struct {
	Server     *Server     `field:"server"`
	Controller *Controller `field:"controller"`
	APIServer  *APIServer  `field:"apiServer"`
	Webhook    *Webhook    `field:"webhook"`
	Pods       *Pods       `field:"pods"`
	Quota      *Quota      `field:"quota"`
}

// Server makes the Git server or the registry of the sandbox fail: exactly one of Down, Status and Delay
// is set. Pushes to the Git server are not affected.
type Server struct {
	Name string `field:"name,required"`
	// Down closes connections without a response.
	Down bool `field:"down"`
	// Status is the HTTP status of all responses.
	Status int `field:"status"`
	// Delay is the delay of each response.
	Delay time.Duration `field:"delay"`
	// For is the duration of the fault, 0 until the end of the step.
	For time.Duration `field:"for"`
}

// Controller kills a Flux controller, or assigns its lease to another process.
type Controller struct {
	Name  string `field:"name,required"`
	State string `field:"state,required"`
}

// APIServer restarts the API server.
type APIServer struct {
	State string `field:"state,required"`
}

// Webhook makes an admission webhook reject objects or not respond.
type Webhook struct {
	Resource  string `field:"resource,required"`
	APIGroup  string `field:"apiGroup"`
	Namespace string `field:"namespace"`
	// Deny is the message with which the webhook rejects objects, "" for a webhook that does not respond.
	Deny string `field:"deny"`
}

// Pods sets the state of simulated pods in a namespace: of all pods, of the pods with Labels, or of a Helm hook's pods.
type Pods struct {
	Namespace string            `field:"namespace,required"`
	Labels    map[string]string `field:"labels"`
	Hook      string            `field:"hook"`
	State     string            `field:"state,required"`
}

// Quota creates a ResourceQuota.
type Quota struct {
	Namespace string            `field:"namespace,required"`
	Hard      map[string]string `field:"hard,required"`
}

// The values of the fields named State, and of Server.Name.
const (
	Killed     = "killed"
	Leaderless = "leaderless"
	Restarted  = "restarted"
)

func servers() []string { return []string{"git", "registry"} }

// crashLoop is the only state that also applies to existing pods.
const crashLoop = "crash-loop"

// podStates lists the states that the sandbox simulates.
func podStates() []string {
	return []string{crashLoop, "image-pull-error", "pending", "slow-start", "fail"}
}

// hooks lists the values of Helm's hook annotation.
func hooks() []string {
	all := []string{"test"}
	for _, action := range []string{"install", "upgrade", "rollback", "delete"} {
		all = append(all, "pre-"+action, "post-"+action)
	}
	return all
}

// Check returns a violated constraint that is not expressed by the types of a fault, or "".
func (f *Fault) Check() string {
	set := 0
	fields := reflect.ValueOf(f).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).IsNil() {
			set++
		}
	}
	switch {
	case set != 1:
		return "exactly one of server, controller, apiServer, webhook, pods and quota is required"
	case f.Server != nil:
		return f.Server.check()
	case f.Controller != nil:
		names := controllers.Names(func(controllers.Controller) bool { return true })
		if wrong := among("controller.name", f.Controller.Name, names); wrong != "" {
			return wrong
		}
		return among("controller.state", f.Controller.State, []string{Killed, Leaderless})
	case f.APIServer != nil:
		return among("apiServer.state", f.APIServer.State, []string{Restarted})
	case f.Pods != nil:
		return f.Pods.check()
	}
	return ""
}

func (p *Pods) check() string {
	if _, err := labels.ValidatedSelectorFromSet(p.Labels); err != nil {
		return fmt.Sprintf("pods.labels: invalid labels %q", labels.FormatLabels(p.Labels))
	}
	if p.Hook != "" && !slices.Contains(hooks(), p.Hook) {
		return among("pods.hook", p.Hook, hooks())
	}
	return among("pods.state", p.State, podStates())
}

func (s *Server) check() string {
	set := 0
	for _, is := range []bool{s.Down, s.Status != 0, s.Delay != 0} {
		if is {
			set++
		}
	}
	switch wrong := among("server.name", s.Name, servers()); {
	case wrong != "":
		return wrong
	case set != 1:
		return "server: exactly one of down, status and delay is required"
	case s.Status != 0 && (s.Status < 400 || s.Status > 599):
		return "server.status: must be from 400 to 599"
	}
	return ""
}

func among(field, value string, names []string) string {
	for _, name := range names {
		if name == value {
			return ""
		}
	}
	return fmt.Sprintf("%s: must be %s, not %s", field, strings.Join(names, " or "), value)
}

// Injector causes faults.
type Injector struct {
	Client  *kube.Client
	Sandbox *sandbox.Sandbox
	// Home is the namespace of the controllers.
	Home string
	Now  func() time.Time
}

// End ends a fault.
type End func(context.Context) error

// Lasting returns the longest duration of the faults that end before the step ends.
func Lasting(faults []Fault) time.Duration {
	var longest time.Duration
	for _, f := range faults {
		if f.Server != nil {
			longest = max(longest, f.Server.For)
		}
	}
	return longest
}

// Begin starts faults and returns when they are active. The caller must always call End.
func (i Injector) Begin(ctx context.Context, faults []Fault) (End, error) {
	var ends []End
	end := func(ctx context.Context) error {
		var errs []error
		for n := range ends {
			errs = append(errs, ends[len(ends)-1-n](ctx))
		}
		return errors.Join(errs...)
	}
	for n, f := range faults {
		one, err := i.begin(ctx, n, f)
		if one != nil {
			ends = append(ends, one)
		}
		if err != nil {
			return end, fmt.Errorf("causing the fault %s: %w", f, err)
		}
	}
	return end, nil
}

// begin starts the nth fault of a step.
func (i Injector) begin(ctx context.Context, n int, f Fault) (End, error) {
	switch {
	case f.Server != nil:
		return i.server(ctx, f.Server)
	case f.Controller != nil && f.Controller.State == Killed:
		return nil, i.kill(ctx, f.Controller.Name)
	case f.Controller != nil:
		return i.takeLease(ctx, f.Controller.Name)
	case f.APIServer != nil:
		return nil, i.Sandbox.RestartAPIServer(ctx)
	case f.Webhook != nil:
		return i.webhook(ctx, f.Webhook)
	case f.Pods != nil:
		return i.pods(ctx, name+"-"+strconv.Itoa(n), f.Pods)
	}
	return i.quota(ctx, f.Quota)
}

// String returns the name of a fault.
func (f Fault) String() string {
	switch {
	case f.Server != nil:
		return "server " + f.Server.Name
	case f.Controller != nil:
		return "controller " + f.Controller.Name + " " + f.Controller.State
	case f.APIServer != nil:
		return "apiServer " + f.APIServer.State
	case f.Webhook != nil:
		return "webhook for " + f.Webhook.Resource
	case f.Pods != nil:
		return "pods " + f.Pods.State
	}
	return "quota"
}

func (i Injector) server(ctx context.Context, s *Server) (End, error) {
	end := func(ctx context.Context) error { return i.Sandbox.ClearFault(ctx, s.Name) }
	return end, i.Sandbox.SetFault(ctx, s.Name, sandbox.Fault{Down: s.Down, Status: s.Status, Delay: s.Delay, For: s.For})
}

// name is the name of the objects that faults create.
const name = "flux-test-fault"

// deleted returns an End that deletes the fault's objects.
func (i Injector) deleted(objects ...*unstructured.Unstructured) End {
	return func(ctx context.Context) error {
		var errs []error
		for _, o := range objects {
			errs = append(errs, i.Client.Remove(ctx, kube.ResourceFor(o.GroupVersionKind()), o.GetNamespace(), o.GetName()))
		}
		return errors.Join(errs...)
	}
}

// quota creates a ResourceQuota and waits until the API server enforces it.
func (i Injector) quota(ctx context.Context, q *Quota) (End, error) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": name, "namespace": q.Namespace}, "spec": map[string]any{"hard": texts(q.Hard)},
	}}
	if err := kube.Apply(ctx, i.Client, []*unstructured.Unstructured{o}); err != nil {
		return nil, err
	}
	err := i.Client.Follow(ctx, kube.ResourceFor(o.GroupVersionKind()), kube.Selection{Namespace: q.Namespace, Name: name}, "", func(e kube.Event) (bool, error) {
		_, enforced := controllers.Path{"status.hard"}.Lookup(e.Object)
		return enforced, nil
	})
	return i.deleted(o), err
}
