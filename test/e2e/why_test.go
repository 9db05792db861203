package e2e_test

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// whyPause is the interval of `flux why` calls, each of which reports a single moment.
const whyPause = time.Second

// failure is a problem, created through Git or the Kubernetes API, and the expected output of `flux why`.
// ${NS} is its namespace, ${PATH} its directory in the repository, ${URL} the repository and ${REGISTRY} the
// registry.
type failure struct {
	name string
	// nightly is set for failures with the same code as a failure of the e2e tier.
	nightly bool
	// files are pushed to the directory of the failure.
	files map[string]string
	// objects are applied to the namespace; the default is a GitRepository and a Kustomization called app.
	objects string
	// then breaks a healthy setup: it is called after the Kustomization app is ready.
	then func(f *fixture)
	// args lists the arguments of `flux why`, by default "kustomization app".
	args []string
	// root is the object of the root cause, as Kind/name, and code its code.
	root, code string
	// says lists texts in the message, the details and the fixes of the root cause. never lists texts that its
	// message and fixes must not contain, and hides texts that the whole report must not contain.
	says, never, hides []string
	// fix makes the change that the fixes describe. After the change and the commands of the fixes, the object
	// must become healthy.
	fix func(f *fixture)
	// given contains the values of the placeholders in the commands of the fixes.
	given map[string]func(f *fixture) string
	// fails lists the commands that must fail, with a part of their output.
	fails map[string]string
	// broken is set if nothing is fixed: each flux reconcile must fail with the same root cause. once is set if
	// other failures execute these commands.
	broken, once bool
}

// inTier returns the failures of the e2e tier, or the failures that only run at night.
func inTier(failures []failure, nightly bool) []failure {
	return slices.DeleteFunc(failures, func(c failure) bool { return c.nightly != nightly })
}

// withoutReconcile returns failures whose fixes are executed except for flux reconcile, which others execute.
func withoutReconcile(failures []failure) []failure {
	for i := range failures {
		failures[i].once = true
	}
	return failures
}

// runFailures creates all failures of a tier at once, and checks each one in its own namespace.
func runFailures(f *fixture, failures []failure, nightly bool) {
	f.t.Helper()
	failures = inTier(failures, nightly)
	pushFiles(f, failures)
	for _, c := range failures {
		c.prepare(f.in(f.namespace + "-" + c.name))
	}
	for _, c := range failures {
		if c.then != nil {
			broken := f.in(f.namespace + "-" + c.name)
			waitReady(broken)
			c.then(broken)
		}
	}
	for _, c := range failures {
		f.t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			part := f.as(t).in(f.namespace + "-" + c.name)
			reportFailure(part)
			c.check(part)
		})
	}
}

// pushFiles pushes the files of all failures in one commit.
func pushFiles(f *fixture, failures []failure) {
	f.t.Helper()
	files := map[string]string{
		"chart/Chart.yaml": chart, "chart/values.yaml": "from: nowhere\n", "chart/templates/app.yaml": chartTemplate,
	}
	for _, c := range failures {
		for name, content := range c.files {
			files[path.Join("cases", c.name, name)] = strings.ReplaceAll(content, "${NS}", f.namespace+"-"+c.name)
		}
	}
	f.git.commit("Break everything", files)
}

// prepare creates the namespace of a failure with its objects, which are deleted at the end.
func (c failure) prepare(f *fixture) {
	f.t.Helper()
	objects := strings.ReplaceAll(cmp.Or(c.objects, "${DEFAULT}"), "${DEFAULT}", whyDefault)
	objects = strings.NewReplacer("${URL}", f.git.address, "${REGISTRY}", f.cluster.Env["FLUX_SANDBOX_REGISTRY"]).Replace(c.expand(f, objects))
	for _, manifests := range []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: " + f.namespace + "}\n", gitSecret, objects} {
		f.seed(manifests)
		removeFinally(f, manifests)
	}
}

// removeFinally deletes the objects that are not in a namespace at the end of the test.
func removeFinally(f *fixture, manifests string) {
	f.t.Helper()
	objects, err := testcluster.Decode([]byte(manifests))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitTime)
		defer cancel()
		for _, o := range objects {
			if r := kube.ResourceFor(o.GroupVersionKind()); r.ClusterScoped {
				if err := f.cluster.Client.Remove(ctx, r, "", o.GetName()); err != nil {
					f.t.Error(err)
				}
			}
		}
	})
}

// expand replaces the placeholders of the failure in text.
func (c failure) expand(f *fixture, text string) string {
	return strings.NewReplacer("${NS}", f.namespace, "${PATH}", "cases/"+c.name).Replace(text)
}

// waitReady waits for the Kustomization app.
func waitReady(f *fixture) {
	f.t.Helper()
	f.shell.run("flux", "wait", "kustomization", "app", "-n", f.namespace)
}

// check calls `flux why` until it returns the expected result, and executes the fixes.
func (c failure) check(f *fixture) {
	f.t.Helper()
	found := c.find(f)
	if f.t.Failed() {
		return
	}
	if c.fix != nil {
		c.fix(f)
	}
	c.execute(f, found)
	if c.fix != nil {
		untilWhy(f, c.args, func(v verdict, code int) (finding, bool) { return finding{}, v.Healthy && code == 0 })
	}
}

// find returns the root cause of the result after checking its texts.
func (c failure) find(f *fixture) finding {
	f.t.Helper()
	var report string
	root := c.expand(f, c.root)
	found := untilWhy(f, c.args, func(v verdict, code int) (finding, bool) {
		for _, one := range v.Cases {
			if one.Root.Code == c.code && one.Root.Object.Kind+"/"+one.Root.Object.Name == root {
				report = v.report
				return one.Root, code == 1
			}
		}
		return finding{}, false
	})
	text := strings.Join(append([]string{found.Message}, found.Remedies...), "\n")
	all := strings.Join(append([]string{text}, found.Details...), "\n")
	for _, part := range c.says {
		if part = c.expand(f, part); !strings.Contains(all, part) {
			f.t.Errorf("the root lacks %q:\n%s", part, all)
		}
	}
	for _, word := range c.never {
		if word = c.expand(f, word); strings.Contains(text, word) {
			f.t.Errorf("the root has %q:\n%s", word, text)
		}
	}
	for _, word := range c.hides {
		if strings.Contains(report, word) {
			f.t.Errorf("the report has %q:\n%s", word, report)
		}
	}
	return found
}

// untilWhy calls `flux why` until accepts returns true.
func untilWhy(f *fixture, args []string, accepts func(v verdict, code int) (finding, bool)) finding {
	f.t.Helper()
	if args == nil {
		args = []string{"kustomization", "app"}
	}
	args = slices.Concat([]string{"why", "-n", f.namespace, "-o", "json"}, args)
	late := deadline(f.t)
	pause := time.NewTicker(whyPause)
	defer pause.Stop()
	for {
		stdout, stderr, err := f.shell.try("flux", args...)
		var v verdict
		if json.Unmarshal([]byte(stdout), &v) == nil {
			v.report = stdout
			if found, ok := accepts(v, exitCode(err)); ok {
				return found
			}
		}
		select {
		case <-pause.C:
		case <-late:
			f.t.Fatalf("flux %s ends with %v and not with the answer:\n%s%s", strings.Join(args, " "), err, stdout, stderr)
		}
	}
}

// finding contains the fields of a root cause that the tests read.
type finding struct {
	Object            struct{ Kind, Namespace, Name string }
	Code              string
	Message           string
	Details, Remedies []string
}

// verdict is the result of flux why, and report its whole text.
type verdict struct {
	report  string
	Healthy bool
	Cases   []struct {
		Root  finding
		Chain []finding
	}
}
