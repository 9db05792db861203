package state

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/process"
)

// Phase is a phase in the life cycle of a sandbox or a part.
type Phase string

// The phases of a sandbox and of its parts.
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

// Status is the status that the supervisor records for itself and its parts.
type Status struct {
	Supervisor process.Identity `json:"supervisor"`
	Phase      Phase            `json:"phase"`
	Message    string           `json:"message,omitempty"`
	Started    time.Time        `json:"started"`
	Parts      []Part           `json:"parts"`
	// Reached are the addresses of this machine that are available to isolated parts.
	Reached []string `json:"reached,omitempty"`
}

// LoadStatus reads the last status; without one it returns the zero value.
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

// LoadIdentity reads the file of SaveIdentity.
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
	// Ignored are the arguments of the pod that the process does not get, with the reasons.
	Ignored []string `json:"ignored,omitempty"`
}

// SavePod writes the record of a pod into its folder.
func SavePod(path string, p Pod) error { return writeJSON(path, p) }

// LoadPod reads the file of SavePod.
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
