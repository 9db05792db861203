package state

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sort"
	"strconv"
)

// Config is what a sandbox keeps from one start to the next, so that
// kubeconfigs, remotes and artifact addresses stay valid.
type Config struct {
	// Controllers are the Flux controllers that run as real processes.
	Controllers []string `json:"controllers"`
	// ControllerDir is the folder that holds their binaries.
	ControllerDir string `json:"controllerDir,omitempty"`
	// Ports maps a purpose such as "apiserver" to its loopback port.
	Ports map[string]int `json:"ports"`
}

// PortNames lists what gets a port of its own.
var PortNames = []string{
	"etcd", "etcd-peer", "apiserver", "controller-manager", "scheduler",
	"kwok", "kubelet", "git-http", "git-https", "git-ssh", "registry",
}

// LoadConfig reads what an earlier start kept; a new folder gives a zero value.
func (f Folder) LoadConfig() (Config, error) {
	var c Config
	err := readJSON(f.Path("sandbox.json"), &c)
	if c.Ports == nil {
		c.Ports = map[string]int{}
	}
	return c, err
}

// SaveConfig keeps c for the next start.
func (f Folder) SaveConfig(c Config) error { return writeJSON(f.Path("sandbox.json"), c) }

// Addr is the loopback address of a purpose.
func (c Config) Addr(name string) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Ports[name]))
}

// Ports are chosen below the range out of which kernels give connections theirs:
// parts listen seconds after the choice, and meanwhile any connection of the
// machine might be given a port of that range. They are chosen by the block, so
// that two sandboxes that start at the same moment rarely choose the same.
const (
	firstPort = 20000
	blocks    = 750
	blockSize = 16
)

// ChoosePorts gives every purpose in PortNames a free port. A kept port that
// another program took meanwhile is replaced; the names of those are returned,
// because addresses that users noted down have changed.
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

// freeBlock is the first of n ports in a row that nobody listens on.
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
	return 0, fmt.Errorf("finding %d free ports between %d and %d: too many programs listen there",
		n, firstPort, firstPort+blocks*blockSize)
}

// FreePort is a loopback port that nobody listened on a moment ago.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
