// Package container turns a container of a pod into a command line for this
// machine: the environment, volumes, Service names and ports of the container are
// translated to folders and loopback ports.
package container

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"github.com/fluxkit/flux/sandbox/internal/controller"
)

// Host returns the resources of this machine that replace those of a container.
type Host struct {
	// Listen returns the loopback address for a port of the container.
	Listen func(containerPort int32) (string, error)
	// Service returns the loopback address for a port of a Service.
	Service func(namespace, name string, port int32) (string, error)
	// Volume returns the folder for a volume of the pod.
	Volume func(name string) string
	// ConfigMap and Secret return the data that environment variables refer to.
	ConfigMap func(name string) (map[string]string, error)
	Secret    func(name string) (map[string]string, error)
}

// Command is a command line with its environment and ports.
type Command struct {
	Args []string
	Env  []string
	// Ports maps the ports of the container to the addresses that replace them.
	Ports map[int32]string
}

// Translate returns the command for one container of pod.
func Translate(pod *corev1.Pod, c *corev1.Container, program controller.Controller, host Host) (Command, error) {
	env, err := environment(pod, c, host)
	if err != nil {
		return Command{}, err
	}
	t := translator{host: host, mounts: c.VolumeMounts}
	command := Command{Ports: map[int32]string{}}
	mapping := expansion.MappingFuncFor(env.values)
	var args []string
	for _, arg := range c.Args {
		arg, err := t.translate(expansion.Expand(arg, mapping))
		if err != nil {
			return Command{}, fmt.Errorf("translating argument %q: %w", arg, err)
		}
		args = append(args, arg)
	}
	for _, store := range program.Stores {
		given, rest := take(args, store.Flag)
		if given == "" {
			// The default is a path in the container's image and must not be used on this machine.
			if given = t.mounted(store.Path); given == store.Path {
				given = host.Volume("unmounted" + strings.ReplaceAll(store.Path, "/", "-"))
			}
		}
		args = append(rest, "--"+store.Flag+"="+given)
	}
	for _, listen := range program.Listens {
		given, rest := take(args, listen.Flag)
		port := portOf(given, listen.Port)
		addr, ok := command.Ports[port]
		if !ok {
			if addr, err = host.Listen(port); err != nil {
				return Command{}, fmt.Errorf("choosing a port for --%s: %w", listen.Flag, err)
			}
			command.Ports[port] = addr
		}
		args = append(rest, "--"+listen.Flag+"="+addr)
	}
	command.Args = args
	for _, name := range env.names {
		value, err := t.translate(env.values[name])
		if err != nil {
			return Command{}, fmt.Errorf("translating variable %s: %w", name, err)
		}
		command.Env = append(command.Env, name+"="+value)
	}
	return command, nil
}

// variables keeps the environment in the order of the container's spec, since a
// variable may refer to an earlier one.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func environment(pod *corev1.Pod, c *corev1.Container, host Host) (*variables, error) {
	env := &variables{values: map[string]string{}}
	if err := envFrom(env, c, host); err != nil {
		return nil, err
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			env.set(e.Name, expansion.Expand(e.Value, expansion.MappingFuncFor(env.values)))
			continue
		}
		value, found, err := resolve(pod, c, e.ValueFrom, host)
		if err != nil {
			return nil, fmt.Errorf("resolving variable %s: %w", e.Name, err)
		}
		if found {
			env.set(e.Name, value)
		}
	}
	return env, nil
}

func envFrom(env *variables, c *corev1.Container, host Host) error {
	for _, from := range c.EnvFrom {
		var data map[string]string
		var err error
		var optional *bool
		switch {
		case from.ConfigMapRef != nil:
			data, err = host.ConfigMap(from.ConfigMapRef.Name)
			optional = from.ConfigMapRef.Optional
		case from.SecretRef != nil:
			data, err = host.Secret(from.SecretRef.Name)
			optional = from.SecretRef.Optional
		}
		if err != nil && (optional == nil || !*optional) {
			return err
		}
		for key, value := range data {
			env.set(from.Prefix+key, value)
		}
	}
	return nil
}

func resolve(pod *corev1.Pod, c *corev1.Container, from *corev1.EnvVarSource, host Host) (string, bool, error) {
	switch {
	case from.FieldRef != nil:
		value, err := field(pod, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err := resource.ExtractContainerResourceValue(from.ResourceFieldRef, c)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return key(host.ConfigMap, ref.Name, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return key(host.Secret, ref.Name, ref.Key, ref.Optional)
	}
	return "", false, fmt.Errorf("unsupported source of an environment variable")
}

func key(read func(string) (map[string]string, error), name, key string, optional *bool) (string, bool, error) {
	data, err := read(name)
	value, found := data[key]
	if optional != nil && *optional {
		return value, found, nil
	}
	if err != nil {
		return "", false, err
	}
	if !found {
		return "", false, fmt.Errorf("no key %q in %q", key, name)
	}
	return value, true, nil
}

// field returns a field of the downward API. Addresses of pods and hosts are loopback.
func field(pod *corev1.Pod, fieldPath string) (string, error) {
	switch fieldPath {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return "127.0.0.1", nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, fieldPath)
}

// take removes a flag from args and returns its value, which may be a separate
// argument.
func take(args []string, flag string) (value string, rest []string) {
	for i := 0; i < len(args); i++ {
		name, v, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch {
		case name != flag || !strings.HasPrefix(args[i], "-"):
			rest = append(rest, args[i])
		case joined:
			value = v
		case i+1 < len(args):
			i++
			value = args[i]
		}
	}
	return value, rest
}

func portOf(addr string, otherwise int32) int32 {
	_, text, found := cutLast(addr, ":")
	port, err := strconv.ParseInt(text, 10, 32)
	if !found || err != nil {
		return otherwise
	}
	return int32(port)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// serviceName matches the DNS name of a Service, optionally with the cluster
// domain, a trailing dot and a port.
var serviceName = regexp.MustCompile(`([a-z0-9][-a-z0-9]*)\.([a-z0-9][-a-z0-9]*)\.svc\b(?:\.[a-z0-9][-a-z0-9]*)*\.?(?::([0-9]+))?`)

// servicePort is the port of an address that names none.
const servicePort = 80

type translator struct {
	host   Host
	mounts []corev1.VolumeMount
}

// translate replaces Service names and paths in volumes in text.
func (t translator) translate(text string) (string, error) {
	flag, value, joined := strings.Cut(text, "=")
	if !joined {
		flag, value = "", text
	}
	var failed error
	value = serviceName.ReplaceAllStringFunc(value, func(match string) string {
		parts := serviceName.FindStringSubmatch(match)
		port := int32(servicePort)
		if parts[3] != "" {
			port = portOf(match, servicePort)
		}
		addr, err := t.host.Service(parts[2], parts[1], port)
		if err != nil {
			failed = err
		}
		return addr
	})
	value = t.mounted(value)
	if joined {
		value = flag + "=" + value
	}
	return value, failed
}

// mounted replaces a path in a volume by the path in the volume's folder. The
// longest mount path wins, as in a container.
func (t translator) mounted(value string) string {
	best := corev1.VolumeMount{}
	for _, m := range t.mounts {
		under := value == m.MountPath || strings.HasPrefix(value, strings.TrimSuffix(m.MountPath, "/")+"/")
		if under && len(m.MountPath) > len(best.MountPath) {
			best = m
		}
	}
	if best.Name == "" {
		return value
	}
	rest := strings.TrimPrefix(value, strings.TrimSuffix(best.MountPath, "/"))
	return path.Join(t.host.Volume(best.Name), best.SubPath, rest)
}
