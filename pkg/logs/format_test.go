package logs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxkit/flux/pkg/logs"
)

// spoken are lines of a controller, one a second.
var spoken = []string{
	`{"level":"info","ts":"2026-11-01T10:00:00.000Z","msg":"starting manager"}`,
	`{"level":"debug","ts":"2026-11-01T10:00:01.000Z","msg":"looking","controllerKind":"Kustomization","name":"app","namespace":"apps"}`,
	`{"level":"info","ts":"2026-11-01T10:00:02.000Z","msg":"fetched https://me:secret@example.com/app","controllerKind":"GitRepository","name":"app","namespace":"apps"}`,
	`{"level":"error","ts":"2026-11-01T10:00:03.000Z","msg":"Reconciler error","error":"no such\u001b[5m file","controllerKind":"Kustomization","name":"app","namespace":"apps"}`,
	`{"level":"info","ts":"2026-11-01T10:00:04.000Z","msg":"done","reconciler kind":"HelmRelease","name":"web","namespace":"web"}`,
	`{"level":"info","ts":"2026-11-01T10:00:05.000Z","msg":"cut`,
	`I1101 10:00:06.000000 1 leaderelection.go:250] attempting to acquire`,
	`E1101 10:00:07.000000 1 reflector.go:158] forbidden`,
	`panic: runtime error: invalid memory address`,
	``,
	`goroutine 1 [running]:`,
	`main.main()`,
	`{}`,
}

func speaking(t *testing.T) *kubelet {
	t.Helper()
	k := newKubelet(t)
	start := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	k.run("sc", "sc", &printing{ended: true, count: len(spoken), line: func(i int) printed {
		return printed{start.Add(time.Duration(i) * time.Second), spoken[i]}
	}})
	return k
}

func read(t *testing.T, k *kubelet, f logs.Filter, format logs.Format) string {
	t.Helper()
	o := options(t)
	o.Filter = f
	pods, err := logs.Pods(t.Context(), k.server.Client, "flux-system")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := logs.Read(t.Context(), k.server.Client, pods, o, func(e *logs.Entry) error { return format(&b, e) }); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFilter(t *testing.T) {
	t.Parallel()
	k := speaking(t)
	for name, test := range map[string]struct {
		filter logs.Filter
		want   string
	}{
		"everything": {logs.Filter{}, `2026-11-01T10:00:00.000Z info  - starting manager 
2026-11-01T10:00:01.000Z debug Kustomization/app.apps - looking 
2026-11-01T10:00:02.000Z info GitRepository/app.apps - fetched https://me:*****@example.com/app 
2026-11-01T10:00:03.000Z error Kustomization/app.apps - Reconciler error no such\x1b[5m file
2026-11-01T10:00:04.000Z info HelmRelease/web.web - done 
2026-11-01T10:00:05.000Z info Pod/sc - {"level":"info","ts":"2026-11-01T10:00:05.000Z","msg":"cut 
2026-11-01T10:00:06.000Z info Pod/sc - I1101 10:00:06.000000 1 leaderelection.go:250] attempting to acquire 
2026-11-01T10:00:07.000Z error Pod/sc - E1101 10:00:07.000000 1 reflector.go:158] forbidden 
2026-11-01T10:00:08.000Z error Pod/sc - panic: runtime error: invalid memory address 
2026-11-01T10:00:09.000Z error Pod/sc -  
2026-11-01T10:00:10.000Z error Pod/sc - goroutine 1 [running]: 
2026-11-01T10:00:11.000Z error Pod/sc - main.main() 
   -  
`},
		"a namespace": {logs.Filter{Namespace: "apps", Level: "info"}, `2026-11-01T10:00:02.000Z info GitRepository/app.apps - fetched https://me:*****@example.com/app 
2026-11-01T10:00:03.000Z error Kustomization/app.apps - Reconciler error no such\x1b[5m file
2026-11-01T10:00:07.000Z error Pod/sc - E1101 10:00:07.000000 1 reflector.go:158] forbidden 
2026-11-01T10:00:08.000Z error Pod/sc - panic: runtime error: invalid memory address 
2026-11-01T10:00:09.000Z error Pod/sc -  
2026-11-01T10:00:10.000Z error Pod/sc - goroutine 1 [running]: 
2026-11-01T10:00:11.000Z error Pod/sc - main.main() 
`},
		"a kind":     {logs.Filter{Kinds: []string{"helmrelease"}}, "2026-11-01T10:00:04.000Z info HelmRelease/web.web - done \n"},
		"a name":     {logs.Filter{Name: "web"}, "2026-11-01T10:00:04.000Z info HelmRelease/web.web - done \n"},
		"an error":   {logs.Filter{Level: "error", Kinds: []string{"Kustomization"}}, "2026-11-01T10:00:03.000Z error Kustomization/app.apps - Reconciler error no such\\x1b[5m file\n"},
		"an object":  {logs.Filter{Objects: map[string]bool{logs.Key("HelmRelease", "web", "web"): true}}, "2026-11-01T10:00:04.000Z info HelmRelease/web.web - done \n"},
		"no objects": {logs.Filter{Objects: map[string]bool{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, read(t, k, test.filter, logs.Text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	k := speaking(t)
	screen := logs.Screen(func(level string) string { return "<" + level + ">" })
	want := "2026-11-01T10:00:03.000Z <error> Kustomization/app.apps - Reconciler error no such\\x1b[5m file\n"
	if diff := cmp.Diff(want, read(t, k, logs.Filter{Level: "error", Kinds: []string{"Kustomization"}}, screen)); diff != "" {
		t.Error(diff)
	}
	want = `{"pod":"sc","level":"info","ts":"2026-11-01T10:00:00.000Z","msg":"starting manager"}
{"pod":"sc","level":"debug","ts":"2026-11-01T10:00:01.000Z","msg":"looking","controllerKind":"Kustomization","name":"app","namespace":"apps"}
{"pod":"sc","level":"info","ts":"2026-11-01T10:00:02.000Z","msg":"fetched https://me:*****@example.com/app","controllerKind":"GitRepository","name":"app","namespace":"apps"}
{"pod":"sc","level":"error","ts":"2026-11-01T10:00:03.000Z","msg":"Reconciler error","error":"no such\u001b[5m file","controllerKind":"Kustomization","name":"app","namespace":"apps"}
{"pod":"sc","level":"info","ts":"2026-11-01T10:00:04.000Z","msg":"done","reconciler kind":"HelmRelease","name":"web","namespace":"web"}
{"pod":"sc","level":"info","msg":"{\"level\":\"info\",\"ts\":\"2026-11-01T10:00:05.000Z\",\"msg\":\"cut","ts":"2026-11-01T10:00:05Z"}
{"pod":"sc","level":"info","msg":"I1101 10:00:06.000000 1 leaderelection.go:250] attempting to acquire","ts":"2026-11-01T10:00:06Z"}
{"pod":"sc","level":"error","msg":"E1101 10:00:07.000000 1 reflector.go:158] forbidden","ts":"2026-11-01T10:00:07Z"}
{"pod":"sc","level":"error","msg":"panic: runtime error: invalid memory address","ts":"2026-11-01T10:00:08Z"}
{"pod":"sc","level":"error","msg":"","ts":"2026-11-01T10:00:09Z"}
{"pod":"sc","level":"error","msg":"goroutine 1 [running]:","ts":"2026-11-01T10:00:10Z"}
{"pod":"sc","level":"error","msg":"main.main()","ts":"2026-11-01T10:00:11Z"}
{"pod":"sc"}
`
	if diff := cmp.Diff(want, read(t, k, logs.Filter{}, logs.JSON)); diff != "" {
		t.Error(diff)
	}
}

// TestReadReportsUnreadableLogs checks that the other logs are read if one cannot be, and that a
// container that has not started is reported.
func TestReadReportsUnreadableLogs(t *testing.T) {
	t.Parallel()
	k := speaking(t)
	k.run("deaf", "deaf", &printing{ended: true})
	k.down["deaf"] = true
	k.server.Put(podPath, podObject("late", "late", 0, map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff"}}))
	other := podObject("web", "web", 0, map[string]any{"running": map[string]any{}})
	other["spec"] = map[string]any{"containers": []any{map[string]any{"name": "web", "image": "example.com/web"}}}
	k.server.Put(podPath, other)
	pods, err := logs.Pods(t.Context(), k.server.Client, "flux-system")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	o := options(t)
	o.Warn = func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	o.Failed = func(err error) { told = append(told, err.Error()) }
	shown := 0
	err = logs.Read(t.Context(), k.server.Client, pods, o, func(*logs.Entry) error {
		shown++
		return nil
	})
	if err != nil || shown != len(spoken) {
		t.Errorf("%d lines, then: %v", shown, err)
	}
	want := []string{
		"pod flux-system/late has not started and has no log yet: ImagePullBackOff",
		"reading the log of pod flux-system/deaf: the node does not answer",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
