package failure

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spoken is a message of a real component with the expected error.
type spoken struct {
	message string
	want    Type
	steps   []Step
}

// messages supplements the examples of package diagnose: every pattern has a
// message here or there.
var messages = []spoken{
	{`Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`, Undecodable, nil},
	{`Deployment/apps/web dry-run failed (BadRequest): strict decoding error: unknown field "spec.replica"`, Undecodable, nil},
	{`Helm install failed for release apps/web with chart app@0.1.0: unable to build kubernetes objects from release manifest: error validating "": error validating data: unknown object type "nil" in ConfigMap.data.a`, Undecodable, nil},
	{`no matches for kind "Gizmo" in group "example.com"`, NoMatch, nil},
	{`Deployment/apps/web apply failed: Operation cannot be fulfilled on deployments.apps "web": the object has been modified; please apply your changes to the latest version and try again`, Conflict, nil},
	{"Deployment/apps/web dry-run failed (FieldManagerConflict): Apply failed with 2 conflicts: conflicts with \"kubectl\":\n- .spec.replicas\n- .spec.paused", Conflict, nil},
	{`Deployment/apps/web dry-run failed (FieldManagerConflict): Apply failed with 1 conflict: conflict with "hpa" with subresource "scale" using apps/v1 at 2026-11-21T22:00:00Z: .spec.replicas`, Conflict, nil},
	{`pods "web-1" is forbidden: failed quota: few: must specify limits.cpu for: web`, Quota, nil},
	{`pods "web-1" is forbidden: status unknown for quota: few, resources: pods`, Quota, nil},
	{`pods "web-1" is forbidden: [maximum cpu usage per Container is 200m, but limit is 1, maximum memory usage per Container is 1Gi, but limit is 2Gi]`, LimitRange, nil},
	{`pods "web-1" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000`, LimitRange, nil},
	{`pods "web-1" is forbidden: no PriorityClass with name urgent was found`, PriorityClass, nil},
	{`pods "web-1" is forbidden: error looking up service account apps/gone: serviceaccount "gone" not found`, ServiceAccount, nil},
	{`pods "web-1" is forbidden: node selector conflict`, Forbidden, nil},
	{`ValidatingAdmissionPolicy 'tags' with binding 'tags' denied request: latest is not allowed`, Admission, nil},
	{`User "bob" cannot get path "/metrics": no RBAC policy matched`, Unauthorized, nil},
	{`health check failed after 2s: failed early due to stalled resources: [Job/apps/migrate status: 'Failed': Job Failed. failed: 1/1, Deployment/apps/web status: 'InProgress']`, Unhealthy, nil},
	{`Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://a.apps.svc:443/?timeout=10s": no endpoints available for service "a"`, WebhookDown, nil},
	{`failed calling webhook "a.example.com": failed to call webhook: Post "https://a.apps.svc:443/": EOF`, Unreachable, nil},
	{`Service/apps/web immutable field detected, failed to delete object: services "web" is forbidden: User "system:serviceaccount:apps:weak" cannot delete resource "services" in API group "" in the namespace "apps"`, Unauthorized, nil},
	{`ConfigMap/apps/a delete failed: context deadline exceeded`, TimedOut, nil},
	{`Gizmo/apps/big apply failed: etcdserver: request is too large`, TooLarge, nil},
	{`Role/a namespace not specified: namespaces "a" not found`, NotFound, nil},

	{`Get "http://a/": proxyconnect tcp: dial tcp 10.0.0.1:3128: connect: connection refused`, Unreachable, nil},
	{`Get "https://a/": http: server gave HTTP response to HTTPS client`, PlainHTTP, nil},
	{`Get "https://a/": tls: first record does not look like a TLS handshake`, PlainHTTP, nil},
	{`Get "https://a/": remote error: tls: bad certificate`, Untrusted, nil},
	{`Get "https://a/": x509: certificate has expired or is not yet valid: current time 2026-11-21T22:00:00Z is after 2025-01-01T00:00:00Z`, Expired, nil},
	{`Get "http://a/": read tcp 10.0.0.1:4014->10.0.0.2:80: read: connection reset by peer`, Unreachable, nil},
	{`Get "http://a/": lookup a on 10.96.0.10:53: server misbehaving`, Unreachable, nil},
	{`connect: no route to host`, Unreachable, nil},
	{`Get "https://a/": net/http: TLS handshake timeout`, Unreachable, nil},
	{`Get "http://a/": EOF`, Unreachable, nil},
	{`Get "http://a/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`, TimedOut, nil},

	{`unable to list remote for 'http://a/b': unexpected client error: unexpected requesting "http://a/b/info/refs?service=git-upload-pack" status code: 500`, ServerFailed, nil},
	{`unexpected requesting "http://a/401" status code: 503`, ServerFailed, nil},
	{`could not get tags for "app": GET "http://a/v2/app/tags/list": response status code 401: unauthorized: authentication required`, Unauthenticated, nil},
	{`HTTP request to http://a/x returned status 403 (Forbidden)`, Unauthenticated, nil},
	{`postMessage failed: request failed with status code 404: no such hook`, NoRevision, nil},
	{`GET https://account.blob.core.windows.net/app: RESPONSE 403: 403 Server failed to authenticate the request.`, Unauthenticated, nil},
	{`failed to get object: googleapi: Error 401: Invalid Credentials, authError`, Unauthenticated, nil},
	{`failed to confirm existence of 'app' bucket: Access Denied.`, Unauthenticated, nil},
	{`fetch from bucket 'app' failed: The specified bucket does not exist`, NoRepository, nil},
	{`indexation of objects from bucket 'app' failed: listing objects from bucket 'app' failed: Access Denied.`, Unauthenticated, nil},

	{`rpc error: code = NotFound desc = failed to pull and unpack image "a/b:1": failed to resolve reference "a/b:1": a/b:1: not found`, NoRevision, nil},
	{`rpc error: code = Unknown desc = failed to pull and unpack image "a/b:1": failed to resolve image "a/b:1": failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://a/token: 403 Forbidden`, Unauthenticated, nil},
	{`rpc error: code = Unknown desc = failed to pull and unpack image "a/b:1": failed to resolve reference "a/b:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`, Unauthenticated, nil},
	{`rpc error: code = Unknown desc = Error response from daemon: manifest for a/b:1 not found: manifest unknown: manifest unknown`, NoRevision, nil},
	{`rpc error: code = Unknown desc = reading manifest 1 in docker.io/a/b: requested access to the resource is denied`, Unauthenticated, nil},
	{`rpc error: code = Unknown desc = unexpected status code [manifests 1]: 401 Unauthorized`, Unauthenticated, nil},
	{`rpc error: code = Unknown desc = a: name unknown`, NoRepository, nil},
	{`rpc error: code = Unknown desc = a: repository name not known to registry`, NoRepository, nil},
	{`rpc error: code = Unknown desc = denied: denied`, Unauthenticated, nil},
	{`rpc error: code = Unknown desc = unexpected status: 429 Too Many Requests`, RateLimited, nil},
	{`rpc error: code = NotFound desc = no match for platform in manifest: not found`, NoPlatform, nil},
	{`invalid reference format: repository name must be lowercase`, NoRevision, []Step{Pull}},

	{`unable to clone 'ssh://git@a/b': ssh: unable to authenticate, attempted methods [none], no supported methods remain`, Unauthenticated, nil},
	{`unable to clone 'ssh://git@a/b': invalid auth method`, Unauthenticated, nil},
	{`unable to clone 'http://a/b': reference not found`, NoRevision, nil},
	{`unable to clone 'http://a/b': remote repository is empty`, Empty, nil},
	{`unable to resolve ref 'refs/heads/a' to a specific commit`, NoRevision, nil},
	{`unable to clone 'http://a/b': upload-pack: not our ref 4014014014014014014014014014014014014014`, NoRevision, nil},
	{`error decrypting sources: failed to verify sops data integrity: expected mac 'A', got 'B'`, Undecryptable, nil},
	{`decryption failed for '/v1, Kind=Secret/a': Error getting data key: 0 successful groups required, got 0`, Undecryptable, nil},
	{`cannot get sops decryption Secret 'apps/keys': secrets "keys" is forbidden: User "a" cannot get resource "secrets" in API group "" in the namespace "apps"`, Unauthorized, nil},
	{`failed to import 'age.agekey' data from sops decryption Secret 'apps/keys': malformed secret key`, "", nil},
	{`Helm upgrade failed for release apps/web with chart app@0.1.0: YAML parse error on app/templates/a.yaml: error converting YAML to JSON: yaml: line 2`, Template, nil},
	{`could not locate a version matching provided version string 9.x`, NoChart, nil},
	{`retrying in 30s error: no tags in database`, NoTag, nil},

	{`failed to configure proxy options: secrets "proxy" not found`, NotFound, nil},
	{`failed to get TLS authentication secret 'apps/tls': secrets "tls" not found`, NotFound, nil},
	{`failed configuring source manager: failed to get auth secret 'apps/git': secrets "git" not found`, NotFound, nil},
	{`public keys secret error: secrets "keys" not found`, NotFound, nil},
	{`failed to verify the signature using provider 'cosign': no matching signatures were found for 'a'`, "", nil},
	{`failed to pull artifact from 'oci://a/b': Get "http://a/": EOF`, Unreachable, nil},
	{`Helm rollback to previous release apps/web.v1 with chart app@0.1.0 failed: cannot patch "web" with kind Service: Service "web" is invalid: spec.ports: Required value`, Invalid, nil},
	{`Helm uninstall failed for release apps/web.v1 with chart app@0.1.0: context deadline exceeded`, TimedOut, nil},
	{`Helm test failed for release apps/web.v1 with chart app@0.1.0: 1 error occurred: pod web-test failed`, "", nil},
	{`Helm install failed for release apps/web with chart app@0.1.0: failed post-install: resource Job/apps/migrate not ready. status: Failed, message: Job Failed. failed: 1/1`, Unhealthy, nil},
	{`Helm install failed for release apps/web with chart app@0.1.0: failed pre-install: warning: Hook pre-install app/templates/job.yaml failed: jobs.batch "a" is forbidden: exceeded quota: few, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1`, Quota, nil},
	{`Helm upgrade failed for release apps/web with chart app@0.1.0: conflict occurred while applying object apps/web apps/v1, Kind=Deployment: Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas`, Conflict, nil},
}

// TestParse checks that messages of components have the expected types.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, m := range messages {
		if got := Parse(m.message, m.steps...); got.Type != m.want {
			t.Errorf("%s\n is %q, not %q: %+v", m.message, got.Type, m.want, got)
		}
	}
}

// TestParseNames checks that the names in an error are parsed as well as its type.
func TestParseNames(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]Failure{
		`ConfigMap/apps/settings dry-run failed (Forbidden): configmaps "settings" is forbidden: User "system:serviceaccount:apps:weak" cannot patch resource "configmaps" in API group "" in the namespace "apps"`: {
			Type: Unauthorized, Steps: []Step{Apply}, Object: Object{Kind: "ConfigMap", Namespace: "apps", Name: "settings"}, Named: Object{Kind: "ConfigMap", Namespace: "apps", Name: "settings"},
			User: "system:serviceaccount:apps:weak", Verb: "patch", Resource: "configmaps", Scope: `in the namespace "apps"`,
		},
		`health check failed after 10s: timeout waiting for: [Deployment/apps/web status: 'InProgress', CustomResourceDefinition/a.b status: 'NotFound']`: {
			Type: Unhealthy, Steps: []Step{Health},
			Objects: []ObjectStatus{
				{Object{Kind: "Deployment", Namespace: "apps", Name: "web"}, "InProgress", ""}, {Object{Kind: "CustomResourceDefinition", Name: "a.b"}, "NotFound", ""},
			},
		},
		"Deployment/apps/web dry-run failed (FieldManagerConflict): Apply failed with 2 conflicts: conflicts with \"kubectl\":\n- .spec.replicas\n- .spec.paused": {
			Type: Conflict, Steps: []Step{Apply}, Object: Object{Kind: "Deployment", Namespace: "apps", Name: "web"}, By: "kubectl", Detail: "- .spec.replicas .spec.paused",
		},
		`Helm install failed for release apps/web with chart app@0.1.0: unable to build kubernetes objects from release manifest: resource mapping not found for name: "x: y" namespace: "" from "": no matches for kind "Gizmo" in version "example.com/v1"`: {
			Type: NoMatch, Steps: []Step{Install, Apply}, Named: Object{Kind: "Gizmo"}, Version: "example.com/v1",
		},
	} {
		got := Parse(message)
		got.Text = ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n-want +got:\n%s", message, diff)
		}
	}
}

// TestEveryPatternIsUsed checks that every pattern matches a part of some message.
func TestEveryPatternIsUsed(t *testing.T) {
	t.Parallel()
	var parts []string
	for _, message := range append(corpus(t), everything()...) {
		for at := 0; ; {
			rest := message[at:]
			parts = append(parts, rest)
			if _, described, ok := strings.Cut(rest, " desc = "); ok { // of gRPC
				parts = append(parts, described)
			}
			next := boundary(rest)
			if next < 0 {
				break
			}
			at += next
		}
	}
	unused := func(pattern string, match func(string) []int) {
		if !slices.ContainsFunc(parts, func(part string) bool { return match(part) != nil }) {
			t.Errorf("no message has %s", pattern)
		}
	}
	for _, e := range stepExpressions() {
		unused(e.re.String(), e.match)
	}
	for _, e := range typedExpressions() {
		unused(e.re.String(), e.match)
	}
}

// corpus returns the examples of the rules, without the marks of variable parts.
func corpus(t *testing.T) []string {
	t.Helper()
	marks := regexp.MustCompile(`«(?:\[[nut]\])?|»`)
	var all []string
	for _, name := range []string{"../rules/messages_test.go", "../rules/messagesapply_test.go", "../rules/messagesbuild_test.go", "../rules/messagesoperator_test.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, marks.ReplaceAllString(text, ""))
			}
			return true
		})
	}
	return all
}

func everything() []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.message)
	}
	return all
}

func TestFields(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][]Field{
		`spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive`: {{"spec.ports[0].port", "Invalid value", "99999", "must be between 1 and 65535, inclusive"}},
		`[spec.a: Required value, metadata.labels[a.b/c]: Invalid value: "x, spec.b: Required value": bad, spec.c: Forbidden: may not be set]`: {
			{"spec.a", "Required value", "", ""}, {"metadata.labels[a.b/c]", "Invalid value", `"x, spec.b: Required value"`, "bad"}, {"spec.c", "Forbidden", "", "may not be set"},
		},
		`spec.type: Unsupported value: "Wrong": supported values: "ClusterIP", "NodePort"`:                           {{"spec.type", "Unsupported value", `"Wrong"`, `supported values: "ClusterIP", "NodePort"`}},
		`spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}}: field is immutable`: {{"spec.selector", "Invalid value", `v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}}`, "field is immutable"}},
		`<nil>: Invalid value: {"a":"field is immutable"}: must validate`:                                            {{"", "Invalid value", `{"a":"field is immutable"}`, "must validate"}},
		`metadata.name: Too long: may not be more than 63 bytes`:                                                     {{"metadata.name", "Too long", "", "may not be more than 63 bytes"}},
	} {
		got, ok := fields(message)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s: %t -want +got:\n%s", message, ok, diff)
		}
	}
	for _, message := range []string{"", "is invalid", "spec: Wrong value: x", "[]", "spec.a Required value"} {
		if got, ok := fields(message); ok {
			t.Errorf("%s is parsed as %+v", message, got)
		}
	}
}

// TestImmutable checks that only the error of the field itself makes it immutable.
func TestImmutable(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		`Service "a" is invalid: spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set`:                                 true,
		`StatefulSet.apps "a" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden`: true,
		`RoleBinding.rbac.authorization.k8s.io "a" is invalid: roleRef: Invalid value: {"name":"b"}: cannot change roleRef`:            true,
		`Service "field is immutable" is invalid: spec.type: Invalid value: "field is immutable": unknown`:                             false,
		`Gizmo.example.com "a" is invalid: spec: Invalid value: "object": a name must not say that a field is immutable`:               false,
		`Service "a" is invalid: [spec.clusterIP: Invalid value: "b": field is immutable, spec.ports: Required value]`:                 false,
	} {
		if got := Parse(message); got.Type != Invalid || got.Immutable() != want {
			t.Errorf("%s: %t: %+v", message, got.Immutable(), got)
		}
	}
}

// FuzzParse checks for any message that the parsers terminate within bounds and
// return only text of the message.
func FuzzParse(f *testing.F) {
	for _, m := range messages {
		f.Add(m.message)
	}
	for _, s := range []string{"", ": : :", "'", `"`, "[", "a: [b", `A "b" is invalid: [c: Invalid value: {`, `A "b" is invalid: c: Invalid value: "d`, "timeout waiting for: [", strings.Repeat("a: ", 9000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, message string) {
		got := Parse(message)
		if len(got.Fields) > mostFields || len(got.Objects) > mostFields || len(got.Steps) > deepest {
			t.Errorf("%d fields, %d objects, %d steps", len(got.Fields), len(got.Objects), len(got.Steps))
		}
		for _, part := range []string{got.Named.Name, got.Object.Name, got.By, got.User, got.Verb, got.Address, got.Text} {
			if !strings.Contains(message, part) {
				t.Errorf("%q is not in %q", part, message)
			}
		}
		for _, field := range got.Fields {
			if !strings.Contains(message, field.Path) || !strings.Contains(message, field.Value) {
				t.Errorf("%+v is not in %q", field, message)
			}
		}
		if again := Parse(message); !cmp.Equal(got, again) {
			t.Error("the second result differs")
		}
	})
}
