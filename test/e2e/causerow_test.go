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

// whyTime bounds how long a controller may take to say what is wrong, and
// whyPause is how often `flux why` is asked meanwhile: it answers for one moment.
const (
	whyTime  = 90 * time.Second
	whyPause = time.Second
)

// causeRow is something that is broken, through Git or the Kubernetes API, and
// the answer of `flux why`. ${NS} is the namespace of the row, ${PATH} its folder
// of the repository, ${URL} the repository and ${REGISTRY} the registry.
type causeRow struct {
	name string
	// files are pushed to the folder of the row.
	files map[string]string
	// objects are applied to the namespace; without any they are a GitRepository
	// and a Kustomization called app.
	objects string
	// then breaks what works: it is called once the Kustomization app is ready.
	then func(s *story)
	// ask is what is asked about, "kustomization app" unless given.
	ask []string
	// root is the object at the root, as Kind/name, and code its code.
	root, code string
	// says are parts of the message, the details and the remedies of the root,
	// never are words that its message and remedies must not have, and hides those
	// that the whole report must not have.
	says, never, hides []string
	// fix makes the edit that the remedies name. After the commands of the remedies
	// the object has to become healthy.
	fix func(s *story)
	// given are the values of the placeholders in the commands of the remedies.
	given map[string]func(s *story) string
	// fails are the commands that fail, with a part of their output.
	fails map[string]string
	// broken says that nothing is fixed: each flux reconcile has to fail, with the
	// same root cause. once says that others rows have these commands executed.
	broken, once bool
}

// newRows begins a cluster for rows, whose Git server wants a password.
func newRows(t *testing.T, components ...string) (s *story, address string) {
	t.Helper()
	s = newStory(t)
	s.run("flux", append([]string{"install"}, components...)...)
	return s, s.lock()
}

// lock has the Git server want a password from now on, which the URL of the story
// has, and returns the URL without it.
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

// rows breaks everything at once, and asks about each row in a namespace of its
// own. files are pushed besides those of the rows.
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
			one := s.told(t, prefix+row.name)
			row.asked(one)
		})
	}
}

// asked asks until the answer is there, or the time is over, and executes the
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

// found is the root of the answer, which has to say what the row expects.
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

// in is a text of the row with its names.
func (row causeRow) in(s *story, text string) string {
	return strings.NewReplacer("${NS}", s.namespace, "${PATH}", "cases/"+row.name).Replace(text)
}

// untilWhy asks `flux why` until an answer is accepted, which has to be in time.
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

// exitCode is how a command has ended, -1 where it could not be run.
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

// finding is what the test reads of an answer.
type finding struct {
	Object            struct{ Kind, Namespace, Name string }
	Code              string
	Message           string
	Details, Remedies []string
}

// verdict is an answer of flux why, and report all of its text.
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

// begins applies what a row consists of.
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
