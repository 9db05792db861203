package script_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testtemp"
)

var sandboxes = testcluster.NewPool()

func TestMain(m *testing.M) { os.Exit(testtemp.M{Tests: sandboxes.Around(withFlux{m})}.Run()) }

// withFlux adds the flux of the scripts to PATH before the tests run.
type withFlux struct{ tests *testing.M }

// Run implements testscript.TestingM.
func (w withFlux) Run() int {
	dir, err := testcluster.ProgramsWith("./cmd/flux/script/testdata/flux")
	if err == nil {
		err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return w.tests.Run()
}

// TestScript runs testdata/script/<verb>/<case>.txtar, each in a namespace of
// its own on one server, many at a time. FLUX_SYSTEM_NAMESPACE makes that
// namespace the default one.
func TestScript(t *testing.T) {
	t.Parallel()
	runScripts(t, "script", false)
}

// TestClusterScript runs testdata/cluster/<verb>/<case>.txtar: what looks at
// all namespaces or changes definitions, one after another on a server of its own.
func TestClusterScript(t *testing.T) {
	t.Parallel()
	runScripts(t, "cluster", true)
}

// runScripts runs the scripts of a suite on a server of its own.
func runScripts(t *testing.T, suite string, serial bool) {
	verbs, err := filepath.Glob(filepath.Join("testdata", suite, "*"))
	if err != nil || len(verbs) == 0 {
		t.Fatalf("no scripts in testdata/%s: %v", suite, err)
	}
	var files []string
	for _, verb := range verbs {
		if only := os.Getenv("VERB"); only != "" && !slices.Contains(strings.Split(only, ","), filepath.Base(verb)) {
			continue // VERB=get,tree is for those who work on these
		}
		cases, err := filepath.Glob(filepath.Join(verb, "*.txtar"))
		if err != nil || len(cases) == 0 {
			t.Fatalf("no scripts in %s: %v", verb, err)
		}
		files = append(files, cases...)
	}
	cluster := sandboxes.Acquire(t, testcluster.Whole)
	count := &atomic.Int32{}
	current, others := split(t, files)
	if len(others) > 0 {
		testscript.RunT(tShim{t, serial}, params(t, cluster, others, serial, count))
	}
	if len(current) == 0 {
		return
	}
	if err := cluster.InstallCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := params(t, cluster, current, serial, count)
	if setup := p.Setup; serial {
		p.Setup = func(env *testscript.Env) error { // an earlier script may have removed them
			if err := cluster.InstallCRDs(t.Context()); err != nil {
				return err
			}
			return setup(env)
		}
	}
	testscript.RunT(tShim{t, serial}, p)
}

// otherCRDs matches the beginning of a script that first installs the CRDs of another version.
var otherCRDs = regexp.MustCompile(`(?m)\A(#.*\n|\n|env .*\n)*(upgrade --new|outdate) `)

// split returns the scripts that need the current CRDs and those that first install others.
func split(t *testing.T, files []string) (current, others []string) {
	t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if otherCRDs.Match(text) {
			others = append(others, file)
		} else {
			current = append(current, file)
		}
	}
	return current, others
}

// params are the commands and the environment of scripts. The counter gives each
// a namespace of its own.
func params(t *testing.T, cluster *testcluster.Cluster, files []string, serial bool, count *atomic.Int32) testscript.Params {
	return testscript.Params{
		Files:               files,
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			namespace := fmt.Sprintf("t%03d", count.Add(1)) // of one width, for tables
			env.Setenv("NS", namespace)
			env.Setenv("FLUX_SYSTEM_NAMESPACE", namespace)
			env.Setenv("KUBECONFIG", cluster.Kubeconfig)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("REGISTRY", cluster.Env["FLUX_SANDBOX_REGISTRY"])
			env.Setenv("ACTION", filepath.Join(testcluster.Root(), "action"))
			newBackground(env)
			env.Values[lineKey{}] = &lineHolder{}
			stated, err := commitsIn(env.WorkDir)
			if err != nil {
				return err
			}
			env.Values[statedKey{}] = stated
			env.Values[hostKey{}] = &hostHolder{}
			env.Values[cloudKey{}] = &cloudHolder{}
			env.Values[releasesKey{}] = &releasesHolder{}
			env.Values[sigstoreKey{}] = &sigstoreHolder{}
			env.Setenv("PATH", env.Getenv("PATH")+string(os.PathListSeparator)+testcluster.Bin())
			if serial {
				env.Defer(func() { leave(t, cluster) })
			}
			manifest := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
			return cluster.Seed(t.Context(), []byte(manifest), "")
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"terminal": beginOnTerminal, "dashboard": beginDashboard, "views": views, "shows": shows, "reads": reads, "lacks": lacks, "written": written, "resize": resizeTerminal, "types": typeKeys,
			"begin": begin, "waits": waits, "expires": expires, "interrupt": interrupt, "ends": ends,
			"cut": cutLine, "restore": restoreLine,
			"line":     func(ts *testscript.TestScript, neg bool, args []string) { overLine(ts, cluster, neg, args) },
			"record":   func(ts *testscript.TestScript, neg bool, args []string) { record(ts, cluster, neg, args) },
			"seed":     func(ts *testscript.TestScript, neg bool, args []string) { seed(ts, cluster, neg, args) },
			"clock":    func(ts *testscript.TestScript, neg bool, args []string) { clock(ts, cluster, neg, args) },
			"outdate":  func(ts *testscript.TestScript, neg bool, args []string) { outdate(ts, cluster, neg, args) },
			"operator": func(ts *testscript.TestScript, neg bool, args []string) { useOperator(ts, cluster, neg, args) },
			"mask":     mask,
			"answer":   func(ts *testscript.TestScript, neg bool, args []string) { answer(ts, cluster, neg, args) },
			"observe":  func(ts *testscript.TestScript, neg bool, args []string) { observe(ts, cluster, neg, args) },
			"helmed":   func(ts *testscript.TestScript, neg bool, args []string) { helmed(ts, cluster, neg, args) },
			"seal":     seal, "commit": commitFolder, "untouched": untouched, "publish": publish,
			"sshhost": sshhost, "cloud": useCloud, "releases": useReleases, "sigstore": useSigstore,
			"githost": startGithost, "sethost": setHost, "action": runAction, "gitlabjob": runGitLabJob, "hoststate": hostState, "hostcomments": hostComments, "hostchanges": hostChanges, "clone": clone,
			"playflux": func(ts *testscript.TestScript, neg bool, args []string) { playFlux(ts, cluster, neg, args) },
			"keys":     makeKeys,
			"hook":     hook, "hides": hides,
			"serve": serveFolder, "offer": offerPlugin, "sigkill": killJob, "signal": signalJob, "restored": restored,
			"hostgit": hostGit, "deploykey": deployKey,
			"upgrade": func(ts *testscript.TestScript, neg bool, args []string) { upgrade(ts, cluster, neg, args) },
		},
	}
}

// leave removes the objects of Flux that a script has left behind, in whatever
// namespace: the next one may look at the whole cluster.
func leave(t *testing.T, cluster *testcluster.Cluster) {
	// The versions that a client remembers are no longer served where a script
	// has changed the definitions.
	client, err := kube.New(cluster.Client.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range controllers.Kinds {
		err := client.WithServedVersion(t.Context(), k, func(r kube.Resource) error {
			used := map[string]bool{}
			_, err := client.List(t.Context(), r, kube.Selection{}, func(o controllers.Object) error {
				used[controllers.Namespace(o)] = true
				return nil
			})
			for namespace := range used {
				err = errors.Join(err, client.RemoveAll(t.Context(), r, kube.Selection{Namespace: namespace, Labels: "!kept"}))
			}
			return err
		})
		var removed *kube.MissingKindError
		if err != nil && !errors.As(err, &removed) {
			t.Errorf("cleaning up after a script: %v", err)
		}
	}
}

// tShim runs scripts one after another where they share the cluster's state.
type tShim struct {
	*testing.T
	serial bool
}

func (t tShim) Parallel() {
	if !t.serial {
		t.T.Parallel()
	}
}

func (t tShim) Run(name string, run func(testscript.T)) {
	t.T.Run(name, func(sub *testing.T) { run(tShim{sub, t.serial}) })
}

func (t tShim) Verbose() bool { return testing.Verbose() }

// exits runs a command and compares its exit code: exits CODE COMMAND ARG…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s exited with %d, want %d\nstdout:\n%s\nstderr:\n%s",
			strings.Join(args[1:], " "), got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// seed applies objects with their statuses: seed FILE…
func seed(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: seed FILE…")
	}
	for _, name := range args {
		data := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(cluster.Seed(context.Background(), []byte(data), ts.Getenv("NS")))
	}
}

var (
	resourceVersion = regexp.MustCompile(`resourceVersion=\d+`)
	timeoutSeconds  = regexp.MustCompile(`&?timeoutSeconds=\d+`)
)

var (
	varying    = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	commitHash = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
	// elsewhereToo is what scripts that run at the same time bring into a diagnosis.
	elsewhereToo = regexp.MustCompile(`(?m)^.*found in .* of the reference.*\n`)
)

// statedKey is under which a script keeps the commits that stand in its files.
type statedKey struct{}

// commitsIn are the commits that the files of a script name, expectations too:
// these are not left to chance.
func commitsIn(dir string) (map[string]bool, error) {
	stated := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, hash := range commitHash.FindAllString(string(text), -1) {
			stated[hash] = true
		}
		return err
	})
	return stated, err
}

// mask writes stdout or stderr to a file with what differs from run to run
// replaced, to be compared whole: mask stdout|stderr FILE
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mask stdout|stderr FILE")
	}
	text := varying.ReplaceAllString(elsewhereToo.ReplaceAllString(ts.ReadFile(args[0]), ""), "127.0.0.1:PORT")
	text = commitHash.ReplaceAllStringFunc(text, func(hash string) string {
		if ts.Value(statedKey{}).(map[string]bool)[hash] {
			return hash
		}
		return "COMMIT"
	})
	// The directory first: its name has random digits after a t, which can be those of the namespace.
	text = strings.ReplaceAll(text, ts.Getenv("WORK"), "WORK")
	text = strings.ReplaceAll(text, ts.Getenv("NS"), "NAMESPACE")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// answer plays a controller until the script ends: answer KIND NAME True|False REASON MESSAGE
func answer(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: answer KIND NAME True|False REASON MESSAGE")
	}
	k, ok := controllers.FindKind(args[0])
	if !ok {
		ts.Fatalf("unknown kind %s", args[0])
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	ready := controllers.Condition{Status: args[2], Reason: args[3], Message: args[4]}
	namespace := ts.Getenv("NS") // the script may change its environment meanwhile
	go func() { done <- cluster.Answer(ctx, k, namespace, args[1], ready) }()
	ts.Defer(func() {
		cancel()
		ts.Check(<-done)
	})
}

// record sends the following commands through a proxy that writes down every
// request that is not about the API's shape as a line of FILE: record FILE.
// With numbers it also holds the answers of so many requests until all of them
// have come, one number after the other: record FILE WAVE…
func record(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: record FILE [WAVE…]")
	}
	proxy, err := testcluster.NewProxy(cluster, 0)
	ts.Check(err)
	ts.Defer(func() { ts.Check(proxy.Close()) })
	var waves []int
	for _, arg := range args[1:] {
		size, err := strconv.Atoi(arg)
		ts.Check(err)
		waves = append(waves, size)
	}
	if len(waves) > 0 {
		proxy.Waves(waves...)
	}
	ns, path := ts.Getenv("NS"), ts.MkAbs(args[0])
	proxy.OnRequest(func(method, uri string) {
		line := method + " " + strings.ReplaceAll(uri, ns, "NAMESPACE")
		line = resourceVersion.ReplaceAllString(line, "resourceVersion=N")
		line = timeoutSeconds.ReplaceAllString(line, "")
		log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(log, line)
			err = errors.Join(err, log.Close())
		}
		if err != nil {
			ts.Logf("recording %s: %v", line, err)
		}
	})
	ts.Setenv("KUBECONFIG", proxy.Kubeconfig)
}

// clock stops the clock of the following commands some time after an object
// was created: clock KIND NAMESPACE NAME DURATION
func clock(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: clock KIND NAMESPACE NAME DURATION")
	}
	k, ok := controllers.FindKind(args[0])
	if !ok {
		ts.Fatalf("unknown kind %s", args[0])
	}
	o, err := cluster.Client.Get(context.Background(), kube.Of(k), args[1], args[2])
	ts.Check(err)
	created, err := time.Parse(time.RFC3339, controllers.Path{"metadata.creationTimestamp"}.String(o))
	ts.Check(err)
	after, err := time.ParseDuration(args[3])
	ts.Check(err)
	ts.Setenv("CLOCK", created.Add(after).Format(time.RFC3339))
}
