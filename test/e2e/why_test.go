package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
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

// whyCase is something that is really broken, through Git or the Kubernetes
// API, and what `flux why` has to find.
type whyCase struct {
	name string
	// files are pushed to the case's folder of the repository.
	files map[string]string
	// objects are applied to the case's namespace; ${URL} is the repository,
	// ${PATH} the folder. Without any they are a GitRepository and a
	// Kustomization called app.
	objects string
	// then breaks what works: it is called when the Kustomization app is ready.
	then func(s *story)
	// ask is what is asked about, "kustomization app" unless given.
	ask []string
	// root is the object that has to be found, as kind/name, and code its trouble.
	root, code string
	// says is part of the answer: the message, the details or the ways out.
	says string
}

// finding is what the test reads of an answer.
type finding struct {
	Object            struct{ Kind, Namespace, Name string }
	Code              string
	Message           string
	Details, Remedies []string
}

type verdict struct {
	Healthy bool
	Cases   []struct {
		Root  finding
		Chain []finding
	}
}

// TestWhy breaks Flux in every way that people meet, and asks why.
func TestWhy(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.run("flux", "install", "--components-extra=image-reflector-controller,image-automation-controller")
	s.feed("correct horse\n", "flux-sandbox", "git", "credentials", "set", "--username=dev", "--password-stdin", "--dir", s.cluster.Dir)
	address, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("dev", "correct horse")
	plain := s.url
	s.url = address.String()
	cases := whyCases()
	files := map[string]string{"chart/Chart.yaml": chart, "chart/values.yaml": "from: nowhere\n", "chart/templates/app.yaml": chartTemplate}
	for _, c := range cases {
		for name, content := range c.files {
			files[filepath.Join("cases", c.name, name)] = content
		}
	}
	s.commit("Break everything", files)
	for _, c := range cases {
		s.namespace = "why-" + c.name
		s.begins(c, plain)
	}
	for _, c := range cases {
		if c.then == nil {
			continue
		}
		s.namespace = "why-" + c.name
		s.run("flux", "wait", "kustomization", "app", "-n", s.namespace, "--timeout=2m")
		c.then(s)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			one := *s
			one.T, one.namespace = t, "why-"+c.name
			one.why(c)
		})
	}
	// Controllers that do not work are everybody's trouble, so they come last.
	t.Run("controllers", func(t *testing.T) {
		one := *s
		one.T = t
		one.withoutControllers()
	})
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

// begins applies what a case consists of.
func (s *story) begins(c whyCase, address string) {
	s.Helper()
	objects := c.objects
	if objects == "" {
		objects = "${DEFAULT}"
	}
	objects = strings.ReplaceAll(objects, "${DEFAULT}", whyDefault)
	objects = strings.NewReplacer("${URL}", address, "${PATH}", "cases/"+c.name, "${NS}", s.namespace, "${REGISTRY}", s.cluster.Env["FLUX_SANDBOX_REGISTRY"]).Replace(objects)
	const access = "apiVersion: v1\nkind: Secret\nmetadata: {name: git}\nstringData: {username: dev, password: correct horse}\n"
	namespace := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", s.namespace)
	for _, manifests := range []string{namespace, access, objects} {
		if err := s.cluster.Seed(s.Context(), []byte(manifests), s.namespace); err != nil {
			s.Fatalf("%s: %v", c.name, err)
		}
	}
}

// why asks until the answer is there or the time is over.
func (s *story) why(c whyCase) {
	s.Helper()
	ask := c.ask
	if ask == nil {
		ask = []string{"kustomization", "app"}
	}
	ask = append([]string{"why", "-n", s.namespace, "-o", "json"}, ask...)
	deadline := time.After(whyTime)
	tick := time.NewTicker(whyPause)
	defer tick.Stop()
	for {
		stdout, stderr, err := s.try("flux", ask...)
		var v verdict
		if jsonErr := json.Unmarshal([]byte(stdout), &v); jsonErr == nil && err != nil && v.finds(c) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.Fatalf("flux %s ends with %v and does not find %s at %s:\n%s%s", strings.Join(ask, " "), err, c.code, c.root, stdout, stderr)
		}
	}
}

func (v verdict) finds(c whyCase) bool {
	for _, found := range v.Cases {
		r := found.Root
		text := strings.Join(append(append([]string{r.Message}, r.Details...), r.Remedies...), "\n")
		if r.Code == c.code && r.Object.Kind+"/"+r.Object.Name == c.root && strings.Contains(text, c.says) {
			return true
		}
	}
	return false
}

// withoutControllers stops one controller and lets another one crash.
func (s *story) withoutControllers() {
	s.namespace = "why-controllers"
	s.run("kubectl", "create", "namespace", s.namespace)
	s.run("kubectl", "-n", "flux-system", "scale", "deployment", "image-reflector-controller", "--replicas=0")
	s.run("kubectl", "-n", "flux-system", "patch", "deployment", "image-automation-controller", "--type=json",
		`-p=[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--no-such-flag"},{"op":"add","path":"/spec/strategy","value":{"type":"Recreate"}}]`)
	s.run("kubectl", "-n", s.namespace, "apply", "-f", s.write("objects.yaml", fmt.Sprintf(`
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: app}
spec: {interval: 1h, image: %s/app}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: app}
spec: {interval: 1h, sourceRef: {kind: GitRepository, name: app, namespace: why-suspended}, git: {commit: {author: {email: a@example.com}}}, update: {path: ./}}
`, s.cluster.Env["FLUX_SANDBOX_REGISTRY"])))
	s.why(whyCase{ask: []string{}, root: "Deployment/image-reflector-controller", code: "controller-stopped", says: "kubectl -n flux-system scale deployment"})
	s.why(whyCase{ask: []string{"imagerepository", "app"}, root: "Deployment/image-reflector-controller", code: "controller-stopped"})
	s.why(whyCase{ask: []string{"imageupdateautomation", "app"}, root: "Deployment/image-automation-controller", code: "controller-down", says: "ended with exit code"})
}
