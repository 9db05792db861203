package state

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/process"
)

// Phase is a phase in the life cycle of a sandbox or a component.
type Phase string

// The phases of a sandbox and of its components.
const (
	Starting Phase = "starting"
	Ready    Phase = "ready"
	Stopping Phase = "stopping"
	Stopped  Phase = "stopped"
	Failed   Phase = "failed"
)

// Part is a process of the sandbox as last seen by its supervisor.
type Part struct {
	Name string `json:"name"`
	process.Identity
	Phase   Phase          `json:"phase"`
	Message string         `json:"message,omitempty"`
	Ports   map[string]int `json:"ports,omitempty"`
}

// Status is the status that the supervisor records for itself and its components.
type Status struct {
	Supervisor process.Identity `json:"supervisor"`
	Phase      Phase            `json:"phase"`
	Message    string           `json:"message,omitempty"`
	Started    time.Time        `json:"started"`
	Parts      []Part           `json:"parts"`
	// Reached lists the addresses of this machine that are available to isolated
	// components.
	Reached []string `json:"reached,omitempty"`
}

// LoadStatus reads the last status, or returns the zero value if there is none.
func (f Folder) LoadStatus() (Status, error) {
	var s Status
	return s, readJSON(f.Path("status.json"), &s)
}

// SaveStatus replaces the status.
func (f Folder) SaveStatus(s Status) error { return writeJSON(f.Path("status.json"), s) }

// RemoveStatus removes the status, if there is one.
func (f Folder) RemoveStatus() error {
	err := os.Remove(f.Path("status.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the sandbox's status: %w", err)
	}
	return nil
}

// SaveIdentity records a process, so that a later command can find it.
func SaveIdentity(path string, id process.Identity) error { return writeJSON(path, id) }

// LoadIdentity reads a process recorded by SaveIdentity.
func LoadIdentity(path string) (process.Identity, error) {
	var id process.Identity
	return id, readJSON(path, &id)
}

// Pod is the record of a pod that runs as a process, written by the agent of the node.
type Pod struct {
	Controller string         `json:"controller"`
	Namespace  string         `json:"namespace"`
	Name       string         `json:"name"`
	UID        string         `json:"uid"`
	Ports      map[string]int `json:"ports"`
	Restarts   int32          `json:"restarts"`
	LogFile    string         `json:"logFile"`
	Started    time.Time      `json:"started"`
	// Ignored lists the arguments of the pod that are not passed to the process, with the
	// reasons.
	Ignored []string `json:"ignored,omitempty"`
}

// SavePod writes the record of a pod into its directory.
func SavePod(path string, p Pod) error { return writeJSON(path, p) }

// LoadPod reads a record written by SavePod.
func LoadPod(path string) (Pod, error) {
	var p Pod
	return p, readJSON(path, &p)
}

// LoadServicePorts reads the loopback port of each Service.
func (f Folder) LoadServicePorts() (map[string]int, error) {
	ports := map[string]int{}
	return ports, readJSON(f.Path("services.json"), &ports)
}

// SaveServicePorts stores the ports, so that the artifact URLs in objects stay valid.
func (f Folder) SaveServicePorts(ports map[string]int) error {
	return writeJSON(f.Path("services.json"), ports)
}
