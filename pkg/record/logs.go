package record

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/kube/recording"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/logs"
)

const (
	// logBytes is the maximum size of a recorded log, and logLine the maximum size of a line.
	logBytes, logLine = 4 << 20, 1 << 20
	// failingLines is the maximum number of lines of a container that is not a controller, and
	// failingMax the maximum number of such containers.
	failingLines, failingMax = 100, 200
)

// container is a log to record.
type container struct {
	namespace, pod, name string
	controller, previous bool
}

// wantLogs selects the logs of the controllers, and of containers that fail.
func (s *run) wantLogs(o controllers.Object) {
	p, controller := logs.Of(o)
	controller = controller && p.Namespace == s.Home
	for _, list := range []string{"status.initContainerStatuses", "status.containerStatuses"} {
		v, _ := controllers.Path{list}.Lookup(o)
		statuses, _ := v.([]any)
		for _, item := range statuses {
			m, _ := item.(map[string]any)
			field := func(path string) string { return controllers.Path{path}.String(m) }
			restarted := field("restartCount") != "0" && field("restartCount") != ""
			failed := field("state.terminated.exitCode") != "" && field("state.terminated.exitCode") != "0"
			c := container{namespace: controllers.Namespace(o), pod: controllers.Name(o), name: field("name"), previous: restarted}
			c.controller = controller && c.name == p.Container
			if c.controller && p.Started || !c.controller && (restarted || failed) && len(s.logs) < failingMax {
				s.logs = append(s.logs, c)
			}
		}
	}
}

// readLogs records the selected logs.
func (s *run) readLogs(ctx context.Context) error {
	s.Reading("logs")
	for _, c := range s.logs {
		for _, previous := range []bool{true, false} {
			if previous && !c.previous {
				continue
			}
			if err := s.log(ctx, c, previous); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *run) log(ctx context.Context, c container, previous bool) error {
	line := recording.Log{Namespace: c.namespace, Pod: c.pod, Container: c.name, Previous: previous}
	n := s.Lines
	if !c.controller {
		n = failingLines
	}
	text, cut, err := s.tail(ctx, kube.LogStream{Namespace: c.namespace, Pod: c.pod, Container: c.name, Previous: previous, Tail: int64(n)})
	line.Text, line.Cut = s.masker.Text(text), cut
	if err != nil {
		if line.Error, err = s.missed(fmt.Sprintf("log of container %s of pod %s/%s", c.name, c.namespace, c.pod), err); err != nil {
			return err
		}
	}
	return s.out.Write(recording.Line{Log: &line})
}

// tail reads the last lines of a log, at most logBytes of them, and reports whether there are more.
func (s *run) tail(ctx context.Context, l kube.LogStream) (text string, cut bool, err error) {
	body, err := s.Client.Pods().Stream(ctx, l)
	if err != nil {
		return "", false, err
	}
	defer body.Close()
	scan := bufio.NewScanner(body)
	scan.Buffer(make([]byte, 64<<10), logLine)
	var lines []string
	size, read := 0, 0
	for scan.Scan() {
		read++
		lines = append(lines, scan.Text())
		for size += len(scan.Text()) + 1; size > logBytes; lines = lines[1:] {
			size -= len(lines[0]) + 1
			cut = true
		}
	}
	if len(lines) > 0 {
		text = strings.Join(lines, "\n") + "\n"
	}
	return text, cut || int64(read) >= l.Tail, scan.Err()
}
