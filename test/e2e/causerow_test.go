package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// whyTime is the maximum time until a controller reports a failure, and whyPause
// is the interval of `flux why` calls: its answer is about one moment.
const (
	whyTime  = 90 * time.Second
	whyPause = time.Second
)

// causeRow is a failure, created through Git or the Kubernetes API, and the expected
// output of `flux why`. ${NS} is the namespace of the row, ${PATH} its folder in the
// repository, ${URL} the repository and ${REGISTRY} the registry.
type causeRow struct {
	name string
	// files are pushed to the folder of the row.
	files map[string]string
	// objects are applied to the namespace; the default is a GitRepository and a
	// Kustomization called app.
	objects string
	// then breaks a healthy setup: it is called after the Kustomization app is ready.
	then func(s *story)
	// ask are the arguments of `flux why`, by default "kustomization app".
	ask []string
	// root is the object of the root cause, as Kind/name, and code its code.
	root, code string
	// says are parts of the message, the details and the remedies of the root cause;
	// never are words that its message and remedies must not contain, and hides those
	// that the whole report must not contain.
	says, never, hides []string
	// fix makes the change that the remedies describe. After it and the commands of the
	// remedies the object must become healthy.
	fix func(s *story)
	// given are the values of the placeholders in the commands of the remedies.
	given map[string]func(s *story) string
	// fails are the commands that must fail, with a part of their output.
	fails map[string]string
	// broken means that nothing is fixed: each flux reconcile must fail with the same
	// root cause. once means that other rows have these commands executed.
	broken, once bool
}

// newRows starts a cluster for rows, with a Git server that requires a password.
func newRows(t *testing.T, components ...string) (s *story, address string) {
	t.Helper()
	s = newStory(t)
	s.run("flux", append([]string{"install"}, components...)...)
	return s, s.lock()
}

// lock makes the Git server require the password in the URL of the story, and returns
// the URL without it.
func (s *story) lock() (address string) {
	s.Helper()
	s.feed("correct horse\n", "flux-sandbox", "git", "credentials", "set", "--username=dev", "--password-stdin", "--dir", s.cluster.Dir)
	open, err := url.Parse(s.url)
	if err != nil {
		s.Fatal(err)
	}
	address = s.url
	open.User = url.UserPassword("dev", "correct horse")
	s.url = open.String()
	return address
}

// rows creates all failures at once, and checks each row in its own namespace. files
// are pushed in addition to those of the rows.
func (s *story) rows(t *testing.T, prefix, address string, rows []causeRow, files map[string]string) {
	t.Helper()
	pushed := map[string]string{}
	maps.Copy(pushed, files)
	for _, row := range rows {
		for name, content := range row.files {
			pushed[path.Join("cases", row.name, name)] = strings.ReplaceAll(content, "${NS}", prefix+row.name)
		}
	}
	s.commit("Break everything", pushed)
	for _, row := range rows {
		s.namespace = prefix + row.name
		s.begins(row, address)
	}
	for _, row := range rows {
		if row.then == nil {
			continue
		}
		s.namespace = prefix + row.name
		s.run("flux", "wait", "kustomization", "app", "-n", s.namespace, "--timeout=2m")
		row.then(s)
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			one := s.inNamespace(t, prefix+row.name)
			row.asked(one)
		})
	}
}

// asked calls `flux why` until the expected answer or the timeout, and executes the
// remedies.
func (row causeRow) asked(s *story) {
	s.Helper()
	found := row.found(s)
	if s.Failed() {
		return
	}
	if row.fix != nil {
		row.fix(s)
	}
	row.executes(s, found)
	if row.fix != nil {
		s.untilWhy(row.ask, func(v verdict, code int) (finding, bool) { return finding{}, v.Healthy && code == 0 })
	}
}

// found returns the root cause of the answer and checks it against the row.
func (row causeRow) found(s *story) finding {
	s.Helper()
	var report string
	found := s.untilWhy(row.ask, func(v verdict, code int) (finding, bool) {
		for _, c := range v.Cases {
			if c.Root.Code == row.code && c.Root.Object.Kind+"/"+c.Root.Object.Name == row.root {
				report = v.report
				return c.Root, code == 1
			}
		}
		return finding{}, false
	})
	text := strings.Join(append([]string{found.Message}, found.Remedies...), "\n")
	all := strings.Join(append([]string{text}, found.Details...), "\n")
	for _, part := range row.says {
		if part = row.in(s, part); !strings.Contains(all, part) {
			s.Errorf("the root lacks %q:\n%s", part, all)
		}
	}
	for _, word := range row.never {
		if strings.Contains(text, word) {
			s.Errorf("the root has %q:\n%s", word, text)
		}
	}
	for _, word := range row.hides {
		if strings.Contains(report, word) {
			s.Errorf("the report has %q:\n%s", word, report)
		}
	}
	return found
}

// in replaces the placeholders of the row in text.
func (row causeRow) in(s *story, text string) string {
	return strings.NewReplacer("${NS}", s.namespace, "${PATH}", "cases/"+row.name).Replace(text)
}

// untilWhy calls `flux why` until accepts returns true, up to a timeout.
func (s *story) untilWhy(ask []string, accepts func(v verdict, code int) (finding, bool)) finding {
	s.Helper()
	if ask == nil {
		ask = []string{"kustomization", "app"}
	}
	ask = slices.Concat([]string{"why", "-n", s.namespace, "-o", "json"}, ask)
	deadline := time.After(whyTime)
	tick := time.NewTicker(whyPause)
	defer tick.Stop()
	for {
		stdout, stderr, err := s.try("flux", ask...)
		var v verdict
		if jsonErr := json.Unmarshal([]byte(stdout), &v); jsonErr == nil {
			v.report = stdout
			if found, ok := accepts(v, exitCode(err)); ok {
				return found
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.Fatalf("flux %s ends with %v and not with the answer:\n%s%s", strings.Join(ask, " "), err, stdout, stderr)
		}
	}
}

// exitCode returns the exit code of a command, or -1 if it could not be run.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// finding has the fields of a root cause that the tests read.
type finding struct {
	Object            struct{ Kind, Namespace, Name string }
	Code              string
	Message           string
	Details, Remedies []string
}

// verdict is an answer of flux why, and report its whole text.
type verdict struct {
	report  string
	Healthy bool
	Cases   []struct {
		Root  finding
		Chain []finding
	}
}

const whyDefault = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: app}
spec: {interval: 1h, url: "${URL}", ref: {branch: main}, secretRef: {name: git}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app}
spec: {interval: 1h, retryInterval: 10s, timeout: 20s, path: "${PATH}", prune: true, wait: true, targetNamespace: "${NS}", sourceRef: {kind: GitRepository, name: app}}
`

// begins applies the files and objects of a row.
func (s *story) begins(row causeRow, address string) {
	s.Helper()
	objects := row.objects
	if objects == "" {
		objects = "${DEFAULT}"
	}
	objects = strings.ReplaceAll(objects, "${DEFAULT}", whyDefault)
	objects = strings.NewReplacer("${URL}", address, "${PATH}", "cases/"+row.name, "${NS}", s.namespace, "${REGISTRY}", s.cluster.Env["FLUX_SANDBOX_REGISTRY"]).Replace(objects)
	const access = "apiVersion: v1\nkind: Secret\nmetadata: {name: git}\nstringData: {username: dev, password: correct horse}\n"
	namespace := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", s.namespace)
	for _, manifests := range []string{namespace, access, objects} {
		if err := s.cluster.Seed(s.Context(), []byte(manifests), s.namespace); err != nil {
			s.Fatalf("%s: %v", row.name, err)
		}
	}
}
