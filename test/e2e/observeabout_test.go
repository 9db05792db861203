package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
)

// logRecord has the fields of a log record that the test reads.
type logRecord struct {
	Pod, Level, TS, Msg             string
	ControllerKind, Namespace, Name string
}

func recordOf(line string) (r logRecord, ok bool) {
	return r, json.Unmarshal([]byte(line), &r) == nil
}

// about compares the log filters of flux with the log files.
func (s *story) about(files map[string]string) {
	s.Helper()
	below := []string{"Kustomization/apps/fleet", "Kustomization/apps/workloads", "HelmRelease/apps/shop", "HelmChart/apps/apps-shop"}
	shown := s.filtered(files, func(r logRecord) bool {
		return slices.Contains(below, r.ControllerKind+"/"+r.Namespace+"/"+r.Name)
	}, "--for=ks/fleet", "--namespace=apps")
	for _, object := range below {
		if !slices.ContainsFunc(shown, func(r logRecord) bool { return r.ControllerKind+"/"+r.Namespace+"/"+r.Name == object }) {
			s.Errorf("no record about %s", object)
		}
	}
	failed := s.filtered(files, func(r logRecord) bool { return r.Level == "error" }, "--all-namespaces", "--level=error")
	if !slices.ContainsFunc(failed, func(r logRecord) bool { return r.ControllerKind == "Kustomization" && r.Name == "ks-oci" }) {
		s.Errorf("the failure of a Kustomization is not among the errors: %v", failed)
	}
	lines := strings.Count(s.run("flux", "logs", "--all-namespaces", "--level=error", "--kind=Kustomization", "--name=ks-oci"), "\n")
	mine := slices.DeleteFunc(failed, func(r logRecord) bool { return r.ControllerKind != "Kustomization" || r.Name != "ks-oci" })
	if lines != len(mine) {
		s.Errorf("%d lines about what %d records are about", lines, len(mine))
	}
}

// filtered compares the records that flux prints with those of the files, and
// retries if the controllers have logged meanwhile.
func (s *story) filtered(files map[string]string, keep func(logRecord) bool, args ...string) []logRecord {
	s.Helper()
	late := s.deadline()
	for {
		before := s.kept(files, keep)
		got := map[string][]logRecord{}
		all := s.records(args...)
		for _, r := range all {
			got[r.Pod] = append(got[r.Pod], r)
		}
		if gocmp.Equal(before, s.kept(files, keep)) {
			if diff := gocmp.Diff(before, got); diff != "" {
				s.Errorf("flux logs %q: -written +shown:\n%s", args, diff)
			}
			return all
		}
		select {
		case <-late:
			s.Fatal("the controllers do not stop logging")
		default:
		}
	}
}

// records returns the records that flux prints and checks that they are sorted by
// time. The lines of each pod are in the order of the log.
func (s *story) records(args ...string) []logRecord {
	s.Helper()
	var all []logRecord
	latest, at := map[string]string{}, ""
	for line := range strings.Lines(s.run("flux", append([]string{"logs", "--output=json"}, args...)...)) {
		r, ok := recordOf(line)
		if !ok {
			s.Fatalf("not a record: %s", line)
		}
		latest[r.Pod] = max(latest[r.Pod], r.TS)
		if latest[r.Pod] < at {
			s.Errorf("%s is printed after %s", line, at)
		}
		at = latest[r.Pod]
		all = append(all, r)
	}
	return all
}

func (s *story) kept(files map[string]string, keep func(logRecord) bool) map[string][]logRecord {
	s.Helper()
	found := map[string][]logRecord{}
	for pod, file := range files {
		for _, line := range s.written(file) {
			r, ok := recordOf(line)
			if r.Pod = pod; ok && keep(r) {
				found[pod] = append(found[pod], r)
			}
		}
	}
	return found
}
