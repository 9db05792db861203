package state

import (
	"fmt"
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

// ChoosePorts gives every purpose in PortNames a free port. A kept port that
// another program took meanwhile is replaced; the names of those are returned,
// because addresses that users noted down have changed.
func (c *Config) ChoosePorts() (moved []string, err error) {
	for _, name := range PortNames {
		if port, ok := c.Ports[name]; ok {
			if portFree(port) {
				continue
			}
			moved = append(moved, name)
		}
		port, err := c.freePort()
		if err != nil {
			return nil, fmt.Errorf("choosing a port for %s: %w", name, err)
		}
		c.Ports[name] = port
	}
	sort.Strings(moved)
	return moved, nil
}

// freePort asks the kernel for a port that no other purpose here has.
func (c *Config) freePort() (int, error) {
	taken := map[int]bool{}
	for _, port := range c.Ports {
		taken[port] = true
	}
	for {
		port, err := FreePort()
		if err != nil || !taken[port] {
			return port, err
		}
	}
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
