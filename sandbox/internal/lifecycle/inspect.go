package lifecycle

import (
	"fmt"
	"path/filepath"
	"sort"

	"github.com/fluxkit/flux/sandbox/internal/controller"
	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// Report describes the current processes of a sandbox.
type Report struct {
	Up        bool        `json:"up"`
	Ready     bool        `json:"ready"`
	Phase     state.Phase `json:"phase"`
	Folder    string      `json:"folder"`
	Memory    int64       `json:"memoryBytes"`
	Processes []Process   `json:"processes"`
}

// Process describes one process of the sandbox.
type Process struct {
	Name    string         `json:"name"`
	PID     int            `json:"pid,omitempty"`
	Phase   state.Phase    `json:"state"`
	Message string         `json:"message,omitempty"`
	Ports   map[string]int `json:"ports,omitempty"`
	Memory  int64          `json:"memoryBytes"`
	Pod     string         `json:"pod,omitempty"`
	// Version is the version of a controller binary.
	Version string `json:"version,omitempty"`
	// Ignored lists the arguments of a pod that are not passed to its controller, with the
	// reasons.
	Ignored []string `json:"ignored,omitempty"`
}

// Inspect reports the actual state of the processes, not only the recorded status.
func Inspect(folder state.Folder) (Report, error) {
	report := Report{Folder: string(folder), Phase: state.Stopped, Processes: []Process{}}
	status, err := folder.LoadStatus()
	if err != nil {
		return report, err
	}
	if !status.Supervisor.Alive() {
		return report, nil
	}
	report.Up, report.Phase = true, status.Phase
	report.Ready = status.Phase == state.Ready
	report.add(Process{Name: "supervisor", PID: status.Supervisor.PID, Phase: state.Ready})
	for _, p := range status.Parts {
		seen := Process{Name: p.Name, PID: p.PID, Phase: p.Phase, Message: p.Message, Ports: p.Ports}
		if p.Phase == state.Ready && !p.Alive() {
			seen.Phase, seen.Message, report.Ready = state.Failed, "has exited", false
		}
		report.add(seen)
	}
	return report, report.addPods(folder)
}

func (r *Report) add(p Process) {
	if p.Phase == state.Starting || p.Phase == state.Ready || p.Phase == state.Stopping {
		p.Memory = process.Resident(p.PID)
	}
	r.Memory += p.Memory
	r.Processes = append(r.Processes, p)
}

// addPods adds the controllers, which belong to pods and not to the supervisor.
func (r *Report) addPods(folder state.Folder) error {
	records, err := filepath.Glob(filepath.Join(folder.Pods(), "*", "pod.json"))
	if err != nil {
		return fmt.Errorf("listing the processes of pods: %w", err)
	}
	config, err := folder.LoadConfig()
	if err != nil {
		return err
	}
	var pods []Process
	for _, path := range records {
		record, err := state.LoadPod(path)
		if err != nil {
			return err
		}
		id, err := state.LoadIdentity(filepath.Join(filepath.Dir(path), "process.json"))
		if err != nil {
			return err
		}
		p := Process{Name: record.Controller, Pod: record.Namespace + "/" + record.Name, PID: id.PID, Phase: state.Stopped, Ports: record.Ports, Ignored: record.Ignored}
		if id.Alive() {
			p.Phase = state.Ready
		}
		if p.Version, err = controller.Version(config.ControllerDir, record.Controller); err != nil {
			return err
		}
		pods = append(pods, p)
	}
	sort.Slice(pods, func(i, j int) bool { return pods[i].Pod < pods[j].Pod })
	for _, p := range pods {
		r.add(p)
	}
	return nil
}
