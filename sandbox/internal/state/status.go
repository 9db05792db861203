package state

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fluxkit/flux/sandbox/internal/process"
)

// Phase is where a sandbox, or one part of it, is in its life.
type Phase string

// The phases of a sandbox and of its parts.
const (
	Starting Phase = "starting"
	Ready    Phase = "ready"
	Stopping Phase = "stopping"
	Stopped  Phase = "stopped"
	Failed   Phase = "failed"
)

// Part is one process of the sandbox as its supervisor last saw it.
type Part struct {
	Name string `json:"name"`
	process.Identity
	Phase   Phase          `json:"phase"`
	Message string         `json:"message,omitempty"`
	Ports   map[string]int `json:"ports,omitempty"`
}

// Status is what the supervisor writes down about itself and its parts.
type Status struct {
	Supervisor process.Identity `json:"supervisor"`
	Phase      Phase            `json:"phase"`
	Message    string           `json:"message,omitempty"`
	Started    time.Time        `json:"started"`
	Parts      []Part           `json:"parts"`
}

// LoadStatus reads the last status; a folder without one gives a zero value.
func (f Folder) LoadStatus() (Status, error) {
	var s Status
	return s, readJSON(f.Path("status.json"), &s)
}

// SaveStatus replaces the status.
func (f Folder) SaveStatus(s Status) error { return writeJSON(f.Path("status.json"), s) }

// RemoveStatus forgets the status; there being none is fine.
func (f Folder) RemoveStatus() error {
	err := os.Remove(f.Path("status.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the sandbox's status: %w", err)
	}
	return nil
}

// SaveIdentity writes down who runs, so that a later command can find it.
func SaveIdentity(path string, id process.Identity) error { return writeJSON(path, id) }

// LoadIdentity reads what SaveIdentity wrote.
func LoadIdentity(path string) (process.Identity, error) {
	var id process.Identity
	return id, readJSON(path, &id)
}

// Pod is a pod that runs as a process, as the fake kubelet wrote it down.
type Pod struct {
	Controller string         `json:"controller"`
	Namespace  string         `json:"namespace"`
	Name       string         `json:"name"`
	UID        string         `json:"uid"`
	Ports      map[string]int `json:"ports"`
	Restarts   int32          `json:"restarts"`
	LogFile    string         `json:"logFile"`
	Started    time.Time      `json:"started"`
}

// SavePod writes a pod's record into the pod's folder.
func SavePod(path string, p Pod) error { return writeJSON(path, p) }

// LoadPod reads what SavePod wrote.
func LoadPod(path string) (Pod, error) {
	var p Pod
	return p, readJSON(path, &p)
}

// LoadServicePorts reads which port stands for which Service.
func (f Folder) LoadServicePorts() (map[string]int, error) {
	ports := map[string]int{}
	return ports, readJSON(f.Path("services.json"), &ports)
}

// SaveServicePorts keeps the ports, so that artifacts stay where objects say.
func (f Folder) SaveServicePorts(ports map[string]int) error {
	return writeJSON(f.Path("services.json"), ports)
}
