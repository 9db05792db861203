package artifact

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// service is a port of a Service in the cluster.
type service struct {
	namespace, name string
	port            int64
}

// serviceOf returns the service at an address such as name.namespace.svc.cluster.local. If a
// controller advertises its IP address, it returns the service server in the namespace home.
func serviceOf(address *url.URL, home, server string) service {
	s := service{namespace: home, name: server, port: 80}
	host := address.Hostname()
	if net.ParseIP(host) != nil {
		return s
	}
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	s.name = parts[0]
	if len(parts) > 1 {
		s.namespace = parts[1]
	}
	if port, err := strconv.ParseInt(address.Port(), 10, 32); err == nil {
		s.port = port
	}
	return s
}

type podPort struct {
	namespace, name string
	port            int
}

func core(kind, resource string) kube.Resource {
	return kube.Of(controllers.Kind{Version: "v1", Kind: kind, Resource: resource})
}

// find returns a ready pod of a service and the port that it listens on.
func find(ctx context.Context, client *kube.Client, s service) (podPort, error) {
	if found, ok := direct(ctx, client, s); ok {
		return found, nil
	}
	o, err := client.Get(ctx, core("Service", "services"), s.namespace, s.name)
	if err != nil {
		return podPort{}, err
	}
	wanted, ok := targetPort(o, s.port)
	if !ok {
		return podPort{}, fmt.Errorf("service %s/%s has no port %d", s.namespace, s.name, s.port)
	}
	labels, _ := controllers.Path{"spec.selector"}.Lookup(o)
	selector, _ := labels.(map[string]any)
	var terms []string
	for key, value := range selector {
		terms = append(terms, fmt.Sprintf("%s=%s", key, value))
	}
	slices.Sort(terms)
	found, err := readyPod(ctx, client, s.namespace, strings.Join(terms, ","), wanted)
	if err == nil && found.name == "" {
		err = fmt.Errorf("no pod of service %s/%s is ready", s.namespace, s.name)
	}
	return found, err
}

// Pods of controllers that serve artifacts have the port http and the label app with the
// controller name, which the Services select.
const (
	appLabel   = "app"
	serverPort = "http"
)

// direct finds the pod of a controller without reading the controller's Service. It reports false
// if no pod has the labels and the port that flux installs.
func direct(ctx context.Context, client *kube.Client, s service) (podPort, bool) {
	if _, known := controllers.Find(s.name); !known || s.port != 80 {
		return podPort{}, false
	}
	found, err := readyPod(ctx, client, s.namespace, appLabel+"="+s.name, serverPort)
	return found, err == nil && found.name != ""
}

// readyPod returns the first ready pod with the labels and the port. The name is "" if there is none.
func readyPod(ctx context.Context, client *kube.Client, namespace, labels string, port any) (podPort, error) {
	found := podPort{namespace: namespace}
	selection := kube.Selection{Namespace: namespace, Labels: labels, Without: []string{"metadata.managedFields"}}
	_, err := client.List(ctx, core("Pod", "pods"), selection, func(pod controllers.Object) error {
		ready, _ := controllers.FindCondition(pod, "Ready")
		if port, ok := containerPort(pod, port); ok && found.name == "" && ready.Status == "True" {
			found.name, found.port = controllers.Name(pod), port
		}
		return nil
	})
	return found, err
}

// targetPort returns the pod port for a Service port: a number or a name.
func targetPort(service controllers.Object, port int64) (any, bool) {
	list, _ := controllers.Path{"spec.ports"}.Lookup(service)
	ports, _ := list.([]any)
	for _, p := range ports {
		m, _ := p.(map[string]any)
		if m["port"] != port && len(ports) > 1 {
			continue
		}
		if target := m["targetPort"]; target != nil {
			return target, true
		}
		return m["port"], true
	}
	return nil, false
}

func containerPort(pod controllers.Object, wanted any) (int, bool) {
	if number, ok := wanted.(int64); ok {
		return int(number), true
	}
	list, _ := controllers.Path{"spec.containers"}.Lookup(pod)
	containers, _ := list.([]any)
	for _, c := range containers {
		m, _ := c.(map[string]any)
		ports, _ := m["ports"].([]any)
		for _, p := range ports {
			if port, _ := p.(map[string]any); port["name"] == wanted {
				number, ok := port["containerPort"].(int64)
				return int(number), ok
			}
		}
	}
	return 0, false
}
