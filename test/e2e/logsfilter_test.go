package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// logRecord contains the fields of a log record that the test reads.
type logRecord struct {
	Pod, Level, TS, Msg             string
	ControllerKind, Namespace, Name string
}

func recordOf(line string) (r logRecord, ok bool) {
	return r, json.Unmarshal([]byte(line), &r) == nil
}

// compareFilters compares the log filters of flux with the log files.
func compareFilters(f *fixture, files map[string]string) {
	f.t.Helper()
	below := []string{"Kustomization/apps/fleet", "Kustomization/apps/workloads", "HelmRelease/apps/shop", "HelmChart/apps/apps-shop"}
	shown := filterLogs(f, files, func(r logRecord) bool {
		return slices.Contains(below, r.ControllerKind+"/"+r.Namespace+"/"+r.Name)
	}, "--for=ks/fleet", "--namespace=apps")
	for _, object := range below {
		if !slices.ContainsFunc(shown, func(r logRecord) bool { return r.ControllerKind+"/"+r.Namespace+"/"+r.Name == object }) {
			f.t.Errorf("no record about %s", object)
		}
	}
	failed := filterLogs(f, files, func(r logRecord) bool { return r.Level == "error" }, "--all-namespaces", "--level=error")
	if !slices.ContainsFunc(failed, func(r logRecord) bool { return r.ControllerKind == "Kustomization" && r.Name == "ks-oci" }) {
		f.t.Errorf("the failure of a Kustomization is not among the errors: %v", failed)
	}
	lines := strings.Count(f.shell.run("flux", "logs", "--all-namespaces", "--level=error", "--kind=Kustomization", "--name=ks-oci"), "\n")
	mine := slices.DeleteFunc(failed, func(r logRecord) bool { return r.ControllerKind != "Kustomization" || r.Name != "ks-oci" })
	if lines != len(mine) {
		f.t.Errorf("%d lines about what %d records are about", lines, len(mine))
	}
}

// filterLogs compares the records that flux prints with the records in the files, and
// retries if the controllers have logged in the meantime.
func filterLogs(f *fixture, files map[string]string, keep func(logRecord) bool, args ...string) []logRecord {
	f.t.Helper()
	late := deadline(f.t)
	for {
		before := keptRecords(f.t, files, keep)
		got := map[string][]logRecord{}
		all := logRecords(f, args...)
		for _, r := range all {
			got[r.Pod] = append(got[r.Pod], r)
		}
		if gocmp.Equal(before, keptRecords(f.t, files, keep)) {
			if diff := gocmp.Diff(before, got); diff != "" {
				f.t.Errorf("flux logs %q: -written +shown:\n%s", args, diff)
			}
			return all
		}
		select {
		case <-late:
			f.t.Fatalf("the controllers do not stop logging: -written +shown:\n%s", gocmp.Diff(before, got))
		default:
		}
	}
}

// logRecords returns the records that flux prints and checks that they are sorted by
// time. The lines of each pod are in the order of the log.
func logRecords(f *fixture, args ...string) []logRecord {
	f.t.Helper()
	var all []logRecord
	latest, at := map[string]string{}, ""
	for line := range strings.Lines(f.shell.run("flux", append([]string{"logs", "--output=json"}, args...)...)) {
		r, ok := recordOf(line)
		if !ok {
			f.t.Fatalf("not a record: %s", line)
		}
		latest[r.Pod] = max(latest[r.Pod], r.TS)
		if latest[r.Pod] < at {
			f.t.Errorf("%s is printed after %s", line, at)
		}
		at = latest[r.Pod]
		all = append(all, r)
	}
	return all
}

func keptRecords(t *testing.T, files map[string]string, keep func(logRecord) bool) map[string][]logRecord {
	t.Helper()
	found := map[string][]logRecord{}
	for pod, file := range files {
		for _, line := range logLines(t, file) {
			r, ok := recordOf(line)
			if r.Pod = pod; ok && keep(r) {
				found[pod] = append(found[pod], r)
			}
		}
	}
	return found
}
