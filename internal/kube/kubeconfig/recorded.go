package kubeconfig

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd/api"
)

// recordedExtension is the kubeconfig cluster extension that contains the time of
// the recording that the cluster serves.
const recordedExtension = "flux-recording"

type recorded struct {
	Time time.Time `json:"time"`
}

// Recorded returns the extensions of a cluster that serves a recording made at the given time.
func Recorded(at time.Time) map[string]runtime.Object {
	text := fmt.Sprintf(`{"time":%q}`, at.UTC().Format(time.RFC3339Nano))
	return map[string]runtime.Object{recordedExtension: &runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON}}
}

// Clock returns the clock of the selected cluster after REST: now, or the time of the recording
// that the cluster serves, so that ages are relative to the time of the recording.
func (f *Flags) Clock(now func() time.Time) func() time.Time {
	if !f.FromRecording() {
		return now
	}
	return func() time.Time { return f.recordedAt }
}

// FromRecording reports whether the selected cluster after REST is a recording.
func (f *Flags) FromRecording() bool { return !f.recordedAt.IsZero() }

// recordedBy returns the time of the recording that the selected cluster serves, zero for other clusters.
func (f *Flags) recordedBy(raw api.Config) time.Time {
	c, ok := raw.Contexts[f.contextOf(raw)]
	if !ok {
		return time.Time{}
	}
	name := c.Cluster
	if f.overrides.Context.Cluster != "" {
		name = f.overrides.Context.Cluster
	}
	cluster, ok := raw.Clusters[name]
	if !ok || f.overrides.ClusterInfo.Server != "" {
		return time.Time{}
	}
	extension, ok := cluster.Extensions[recordedExtension].(*runtime.Unknown)
	if !ok {
		return time.Time{}
	}
	var r recorded
	if json.Unmarshal(extension.Raw, &r) != nil {
		return time.Time{}
	}
	return r.Time
}
