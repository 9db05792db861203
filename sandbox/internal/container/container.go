// Package container converts the container of a controller's pod into a command line for this machine. The pod is
// untrusted: only harmless arguments are passed, with Service names and ports replaced by loopback addresses.
// Environment variables and volumes are ignored.
package container

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxkit/flux/sandbox/internal/controller"
)

// Host provides the resources of this machine that replace those of a container.
type Host struct {
	// Listen returns the loopback address for a port of the container.
	Listen func(containerPort int32) (string, error)
	// Service returns the loopback address for a port of a Service.
	Service func(namespace, name string, port int32) (string, error)
	// Folder returns a private directory for a path in the container.
	Folder func(path string) string
	// Untrusted is set if the pod is untrusted: arguments that no controller supports are then ignored as well.
	Untrusted bool
}

// Command is the command line of a controller. Its environment and paths are set by the sandbox, not by the pod.
type Command struct {
	Args []string
	// Ports maps the ports of the container to the addresses that replace them.
	Ports map[int32]string
	// Ignored lists the arguments of the pod that are not passed to the controller, with the reasons.
	Ignored []string
}

// Translate returns the command for one container of pod. It passes only arguments that are known to be harmless.
func Translate(pod *corev1.Pod, c *corev1.Container, program controller.Controller, host Host) (Command, error) {
	t := translator{program: program, host: host, namespace: pod.Namespace, listens: map[string]string{}}
	t.command.Ports = map[int32]string{}
	for args := c.Args; len(args) > 0; {
		taken, err := t.argument(args)
		if err != nil {
			return Command{}, fmt.Errorf("translating argument %q: %w", args[0], err)
		}
		args = args[taken:]
	}
	for _, store := range program.Stores {
		t.pass(store.Flag, host.Folder(store.Path))
	}
	for _, listen := range program.Listens {
		port := portOf(t.listens[listen.Flag], listen.Port)
		addr, ok := t.command.Ports[port]
		if !ok {
			var err error
			if addr, err = host.Listen(port); err != nil {
				return Command{}, fmt.Errorf("choosing a port for --%s: %w", listen.Flag, err)
			}
			t.command.Ports[port] = addr
		}
		t.pass(listen.Flag, addr)
	}
	t.command.Args = append(t.command.Args, program.Args...)
	return t.command, nil
}

// translator translates the arguments of one container.
type translator struct {
	program   controller.Controller
	host      Host
	namespace string
	command   Command
	// listens contains the values of flags with listen addresses.
	listens map[string]string
}

func (t *translator) pass(flag, value string) {
	t.command.Args = append(t.command.Args, "--"+flag+"="+value)
}

func (t *translator) ignore(arg, reason string) {
	t.command.Ignored = append(t.command.Ignored, fmt.Sprintf("%s of %s is ignored: %s", arg, t.program.Name, reason))
}

// argument translates the first argument, and returns how many arguments it has consumed.
func (t *translator) argument(args []string) (taken int, err error) {
	name, value, joined := strings.Cut(strings.TrimPrefix(args[0], "--"), "=")
	if !strings.HasPrefix(args[0], "--") || !flagName.MatchString(name) {
		t.ignore(fmt.Sprintf("argument %q", args[0]), "not a flag")
		return 1, nil
	}
	flag, taken := controller.FindFlag(name), 1
	own := t.isOwn(name)
	if !joined && !flag.Boolean && (flag.Known || own) && len(args) > 1 {
		value, taken, joined = args[1], 2, true
	}
	value = strings.ReplaceAll(value, "$(RUNTIME_NAMESPACE)", t.namespace)
	switch {
	case own:
		t.own(name, value)
		return taken, nil
	case !flag.Known && !t.host.Untrusted:
		// The controller fails as in a cluster. Without a value, the flag has no other effect.
		t.command.Args = append(t.command.Args, "--"+name)
		return taken, nil
	}
	if reason := flag.Check(value); reason != "" {
		t.ignore("argument --"+name, reason)
		return taken, nil
	}
	if !joined {
		t.command.Args = append(t.command.Args, "--"+name)
		return taken, nil
	}
	value, err = t.services(value)
	t.pass(name, value)
	return taken, err
}

// isOwn reports whether the sandbox sets a flag.
func (t *translator) isOwn(name string) bool {
	return slices.ContainsFunc(t.program.Stores, func(s controller.Store) bool { return s.Flag == name }) ||
		slices.ContainsFunc(t.program.Listens, func(l controller.Listen) bool { return l.Flag == name })
}

// own handles a flag that the sandbox sets. Only the port of the value is used.
func (t *translator) own(name, value string) {
	for _, store := range t.program.Stores {
		if store.Flag == name && value != store.Path {
			t.ignore("argument --"+name, "set by the sandbox")
		}
	}
	t.listens[name] = value
}

// flagName matches the names of flags.
var flagName = regexp.MustCompile(`\A[a-z][A-Za-z0-9-]{0,63}\z`)

func portOf(addr string, otherwise int32) int32 {
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		return otherwise
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return otherwise
	}
	return int32(port)
}

// serviceName matches the DNS name of a Service, optionally with the cluster
// domain, a trailing dot and a port.
var serviceName = regexp.MustCompile(`([a-z0-9][-a-z0-9]*)\.([a-z0-9][-a-z0-9]*)\.svc\b(?:\.[a-z0-9][-a-z0-9]*)*\.?(?::([0-9]+))?`)

// servicePort is the default port of a Service address.
const servicePort = 80

// services replaces Service names in text.
func (t *translator) services(text string) (string, error) {
	var failed error
	text = serviceName.ReplaceAllStringFunc(text, func(match string) string {
		parts := serviceName.FindStringSubmatch(match)
		addr, err := t.host.Service(parts[2], parts[1], portOf(match, servicePort))
		failed = errors.Join(failed, err)
		return addr
	})
	return text, failed
}
