package diagnose

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/pkg/controllers"
)

// destroys matches remedies that delete or replace something. For a failure that is only known by its message, none may.
var destroys = regexp.MustCompile(`(kubectl|flux|helm)\b.*\b(delete|uninstall|rollback|replace)\b|--force|finalizers`)

// TestPlanted puts each failure of the controllers in the generated list into the status of an object of each kind of its
// controllers, and each other text into the status of a ready object. Every failure must have a root cause
// that contains its message and has a fix, and no ready object may have a problem.
func TestPlanted(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("rules/testdata/failures.txt")
	if err != nil {
		t.Fatal(err)
	}
	var objects []controllers.Object
	messages := map[controllers.ID]string{}
	for i, line := range strings.Split(string(content), "\n") {
		columns := strings.Split(line, "\t")
		if len(columns) != 4 {
			continue
		}
		text, err := strconv.Unquote(columns[3])
		mark, _, _ := strings.Cut(columns[0], " ")
		if err != nil || !slices.Contains([]string{"rule", "field", "step", "internal", "progress"}, mark) {
			continue
		}
		status, reason := "False", "Failed"
		if mark == "progress" {
			status, reason = "True", "Succeeded"
		}
		message := regexp.MustCompile(`%[+#]?[-0-9.]*(\[\d\])?[a-zA-Z]`).ReplaceAllString(text, "x")
		for _, k := range controllers.Kinds {
			if !slices.Contains(strings.Split(columns[2], ","), k.Controller) || k.Kind == "ExternalArtifact" {
				continue
			}
			o := controllers.Object{
				"apiVersion": k.APIVersion(), "kind": k.Kind,
				"metadata": map[string]any{"namespace": "apps", "name": fmt.Sprint("planted-", i), "generation": int64(1)},
				"status": map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{
					"type": "Ready", "status": status, "reason": reason, "message": message, "observedGeneration": int64(1), "lastTransitionTime": "2026-11-01T09:00:00Z",
				}}},
			}
			objects = append(objects, o)
			if mark != "progress" {
				messages[controllers.IDOf(o)] = message
			}
		}
	}
	s := diagnosisOf(Diagnoser{Client: cluster(t).Client, Home: "flux-system", Now: time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)}, objects, nil)
	failures := 0
	for _, o := range objects {
		id := controllers.IDOf(o)
		message, failed := messages[id]
		chain := s.evaluation.chain(id)
		if !failed {
			if len(chain) > 0 {
				t.Errorf("%s is ready, and has the problem %+v", id, chain)
			}
			continue
		}
		failures++
		if len(chain) == 0 {
			t.Errorf("%s: %s: no problem", id, message)
			continue
		}
		root := chain[len(chain)-1]
		if root.Object != id || len(root.Remedies()) == 0 {
			t.Errorf("%s: %s: %+v", id, message, root)
		}
		for _, fix := range root.Remedies() {
			if destroys.MatchString(fix) {
				t.Errorf("%s: %s: the fix of %s deletes something: %s", id, message, root.Code, fix)
			}
		}
	}
	t.Logf("%d failures, %d ready objects", failures, len(objects)-failures)
	if failures < 1000 {
		t.Error("too few failures")
	}
}
