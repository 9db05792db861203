package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
)

// logRecord is what the test reads of a record of a log.
type logRecord struct {
	Pod, Level, TS, Msg             string
	ControllerKind, Namespace, Name string
}

func recordOf(line string) (r logRecord, ok bool) {
	return r, json.Unmarshal([]byte(line), &r) == nil
}

// about filters the logs as flux is asked to, by the files.
func (s *story) about(files map[string]string) {
	s.Helper()
	below := []string{"Kustomization/apps/fleet", "Kustomization/apps/workloads", "HelmRelease/apps/shop", "HelmChart/apps/apps-shop"}
	shown := s.filtered(files, func(r logRecord) bool {
		return slices.Contains(below, r.ControllerKind+"/"+r.Namespace+"/"+r.Name)
	}, "--for=ks/fleet", "--namespace=apps")
	for _, object := range below {
		if !slices.ContainsFunc(shown, func(r logRecord) bool { return r.ControllerKind+"/"+r.Namespace+"/"+r.Name == object }) {
			s.Errorf("nothing is said about %s", object)
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

// filtered compares the records that flux shows with those of the files, again
// where the controllers have said something meanwhile.
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
			s.Fatal("the controllers do not come to rest")
		default:
		}
	}
}

// records are what flux shows, which has to be in the order of time: that of
// each pod's own lines is as it has printed them.
func (s *story) records(args ...string) []logRecord {
	s.Helper()
	var all []logRecord
	latest, at := map[string]string{}, ""
	for line := range strings.Lines(s.run("flux", append([]string{"logs", "--output=json"}, args...)...)) {
		r, ok := recordOf(line)
		if !ok {
			s.Fatalf("no record: %s", line)
		}
		latest[r.Pod] = max(latest[r.Pod], r.TS)
		if latest[r.Pod] < at {
			s.Errorf("%s comes after what was said at %s", line, at)
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
