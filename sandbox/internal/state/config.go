package state

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sort"
	"strconv"
	"sync"

	"github.com/fluxkit/flux/sandbox/internal/simulate"
)

// Config is the configuration that a sandbox keeps between starts, so that
// kubeconfigs, Git remotes and artifact addresses stay valid.
type Config struct {
	// Controllers lists the Flux controllers that run as real processes.
	Controllers []string `json:"controllers"`
	// ControllerDir is the directory with their binaries.
	ControllerDir string `json:"controllerDir,omitempty"`
	// Mode is the isolation mode of the sandbox.
	Mode
	// Reachable lists the loopback addresses of this machine that are available to isolated components.
	Reachable []string `json:"reachable,omitempty"`
	// Ports maps a purpose such as "apiserver" to its loopback port.
	Ports map[string]int `json:"ports"`
}

// Mode describes how this machine and the sandbox are protected from the objects in the sandbox.
type Mode struct {
	// Untrusted is set if the objects are untrusted.
	Untrusted bool `json:"untrusted,omitempty"`
	// Namespace is the namespace of the controllers, "" for any.
	Namespace string `json:"namespace,omitempty"`
	// Isolated is set if all components run in a separate network namespace.
	Isolated bool `json:"isolated,omitempty"`
	// FeatureGates lists the feature gates of the API server, e.g. Name=true.
	FeatureGates string `json:"featureGates,omitempty"`
}

// Selection selects the pods that run as processes.
func (c Config) Selection() simulate.Selection {
	return simulate.Selection{Controllers: c.Controllers, Namespace: c.Namespace}
}

// PortNames lists the purposes to which ports are assigned.
var PortNames = []string{
	"etcd", "etcd-peer", "apiserver", "controller-manager", "scheduler",
	"kwok", "kubelet", "git-http", "git-https", "git-ssh", "registry",
}

// LoadConfig reads the configuration of an earlier start, or returns the zero value if there is none.
func (f Folder) LoadConfig() (Config, error) {
	var c Config
	err := readJSON(f.Path("sandbox.json"), &c)
	if c.Ports == nil {
		c.Ports = map[string]int{}
	}
	return c, err
}

// SaveConfig stores c for the next start.
func (f Folder) SaveConfig(c Config) error { return writeJSON(f.Path("sandbox.json"), c) }

// Addr returns the loopback address of a purpose.
func (c Config) Addr(name string) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Ports[name]))
}

// Ports are chosen below the kernel's range of ephemeral ports: components listen seconds after the choice, and
// meanwhile, any connection could be assigned an ephemeral port. They are chosen in blocks, so that sandboxes that
// start at the same time rarely choose the same ones.
const (
	firstPort = 20000
	blocks    = 750
	blockSize = 16
)

// ChoosePorts assigns a free port to every purpose in PortNames. Stored ports that other programs use are replaced;
// their names are returned, because their addresses have changed for users.
func (c *Config) ChoosePorts() (moved []string, err error) {
	var missing []string
	for _, name := range PortNames {
		port, kept := c.Ports[name]
		if kept && portFree(port) {
			continue
		}
		if kept {
			moved = append(moved, name)
		}
		delete(c.Ports, name)
		missing = append(missing, name)
	}
	if len(missing) == 0 {
		return nil, nil
	}
	base, err := freeBlock(len(missing))
	if err != nil {
		return nil, err
	}
	for i, name := range missing {
		c.Ports[name] = base + i
	}
	sort.Strings(moved)
	return moved, nil
}

// freeBlock returns the first of n consecutive free ports.
func freeBlock(n int) (int, error) {
	for range 200 {
		base, free := firstPort+blockSize*rand.IntN(blocks), true
		for port := base; port < base+n && free; port++ {
			free = portFree(port)
		}
		if free {
			return base, nil
		}
	}
	return 0, fmt.Errorf("finding %d free ports between %d and %d: too many ports are in use",
		n, firstPort, firstPort+blocks*blockSize)
}

// The ports of controller processes are below the ports of components, and below the ports that the kernel chooses
// for connections and listeners without a fixed port.
const (
	firstProcessPort = 10000
	processPorts     = firstPort - firstProcessPort
)

// PortSequence returns free loopback ports for processes that open them later. It repeats a port only after all
// others, so that two processes that start at the same time do not get the same port. It is safe for concurrent use.
type PortSequence struct {
	mu   sync.Mutex
	next int
}

// NewPortSequence begins at a random port, because other sandboxes on this machine use the same range.
func NewPortSequence() *PortSequence { return &PortSequence{next: rand.IntN(processPorts)} }

// Next returns the next free port.
func (s *PortSequence) Next() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range processPorts {
		port := firstProcessPort + s.next
		s.next = (s.next + 1) % processPorts
		if portFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port between %d and %d is free", firstProcessPort, firstPort-1)
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
