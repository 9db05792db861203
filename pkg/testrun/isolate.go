package testrun

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/sandbox"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// policyName is the name of the admission policies of a run.
const policyName = "flux-test"

// credentialFields are the fields of a GitRepository that do not apply to the repository that is
// served in its place.
var credentialFields = []string{"secretRef", "proxySecretRef", "provider", "verify", "serviceAccountName"}

// outward are the resources that act outside of the cluster: they are suspended if the expression is
// true. Kustomizations and HelmReleases with a kubeConfig would change another cluster.
var outward = []struct {
	group, resource, when, reason string
}{
	{notificationGroup, "alerts", "true", "suspended in the temporary sandbox: nothing is sent"},
	{notificationGroup, "providers", "true", ""},
	{"image.toolkit.fluxcd.io", automations, "true", "suspended in the temporary sandbox: nothing is pushed"},
	{"helm.toolkit.fluxcd.io", "helmreleases", remoteCluster, appliesElsewhere},
	// waitIsolated expects this policy to be the last one.
	{"kustomize.toolkit.fluxcd.io", "kustomizations", remoteCluster, appliesElsewhere},
}

const (
	notificationGroup = "notification.toolkit.fluxcd.io"
	automations       = "imageupdateautomations"

	remoteCluster    = "has(object.spec.kubeConfig)"
	appliesElsewhere = "applies to another cluster, which is not part of the temporary sandbox"
)

// Suspension is why an object is suspended.
type Suspension struct {
	// Reason is "" for an object that needs no mention.
	Reason string
	// Intended is set if the object would act outside of the cluster, or if its manifest suspends it.
	Intended bool
}

// Suspended returns why an object is suspended, nil if it is not.
func (f Flux) Suspended() *Suspension {
	if !f.Kind.Suspension.Is(f.Object) {
		return nil
	}
	for _, o := range outward {
		if o.resource != f.Kind.Resource || o.group != f.Kind.Group {
			continue
		}
		_, remote := (controllers.Path{"spec.kubeConfig"}).Lookup(f.Object)
		if o.when == remoteCluster && !remote {
			break
		}
		return &Suspension{o.reason, o.when != remoteCluster}
	}
	return &Suspension{"suspended in its manifest", true}
}

// isolate makes the API server redirect sources of the repository to the address at which it is
// served, and mapped sources to theirs, and suspend what would act outside of the sandbox. Policies
// see every object as it is applied, whichever patch, chart or variable has produced it.
func (r *Run) isolate(ctx context.Context, i repository.Identity, mapped []redirect) error {
	var objects []*unstructured.Unstructured
	if len(i.Remotes) > 0 || i.Own != nil {
		objects = append(objects, mutation("source", "source.toolkit.fluxcd.io", "gitrepositories", selects(i), redirection(r.Address))...)
	}
	for i, m := range mapped {
		objects = append(objects, m.policy(i)...)
	}
	if r.FakeSecrets {
		objects = append(objects, mutation("decryption", "kustomize.toolkit.fluxcd.io", "kustomizations", "has(object.spec.decryption)",
			`[JSONPatch{op: "remove", path: "/spec/decryption"}]`)...)
	}
	for _, o := range outward {
		if r.Received != nil {
			objects = append(objects, r.Received.mutation(o.group, o.resource)...)
			if o.group == notificationGroup {
				continue
			}
			if o.resource == automations {
				o.when = r.Received.unpermitted()
			}
		}
		objects = append(objects, mutation("suspend-"+o.resource, o.group, o.resource, o.when,
			`[JSONPatch{op: "add", path: "/spec/suspend", value: true}]`)...)
	}
	for _, o := range objects {
		if _, err := kube.Upsert(ctx, r.Sandbox.Guard, o, false); err != nil {
			return fmt.Errorf("isolating the sandbox: %w", err)
		}
	}
	return waitIsolated(ctx, r.Sandbox.Client)
}

// references are the fields of spec.ref.
var references = []string{"branch", "tag", "semver", "name", "commit"}

// selects returns the CEL expression that is true for the sources that are a repository. A source at another revision is
// fetched from its server like all others.
func selects(i repository.Identity) string {
	remotes := slices.Clone(i.Remotes)
	if i.Own != nil {
		remotes = append(remotes, git.ComparableAddress(controllers.Path{"spec.url"}.String(i.Own.Object)))
	}
	slices.Sort(remotes)
	address := "object.spec.url.matches(" + strconv.Quote(addressPattern(slices.Compact(remotes))) + ")"
	if i.Own != nil && i.Own.GetKind() == "GitRepository" {
		ref, _, _ := unstructured.NestedMap(i.Own.Object, "spec", "ref")
		return address + " && " + follows(ref)
	}
	var alternatives []string
	for _, branch := range i.Branches {
		alternatives = append(alternatives, follows(map[string]any{"branch": branch}))
		if (repository.GitReferenceOf(&unstructured.Unstructured{}) == repository.GitReference{Branch: branch}) {
			alternatives = append(alternatives, follows(nil))
		}
	}
	if len(alternatives) == 0 {
		return address
	}
	return address + " && (" + strings.Join(alternatives, " || ") + ")"
}

// follows returns the CEL expression that is true for sources with a reference.
func follows(ref map[string]any) string {
	var all []string
	for _, field := range references {
		value, _ := ref[field].(string)
		all = append(all, fmt.Sprintf("(has(object.spec.ref) && has(object.spec.ref.%s) ? object.spec.ref.%[1]s : '') == %s", field, strconv.Quote(value)))
	}
	return strings.Join(all, " && ")
}

// addressPattern matches the URLs of repositories in each of the forms that
// git.ComparableAddress considers the same.
func addressPattern(remotes []string) string {
	var all []string
	for _, remote := range remotes {
		host, path, _ := strings.Cut(remote, "/")
		all = append(all, regexp.QuoteMeta(host)+`(:[0-9]+)?[:/]+`+regexp.QuoteMeta(path))
	}
	return `(?i)^([a-z+]+://)?([^/@]*@)?(` + strings.Join(all, "|") + `)(\.git)?/*$`
}

func redirection(address string) string {
	patch := `[JSONPatch{op: "add", path: "/spec/url", value: ` + strconv.Quote(address) + `}, ` +
		`JSONPatch{op: "add", path: "/spec/ref", value: {"branch": ` + strconv.Quote(sandbox.Branch) + `}}]`
	return patch + withoutCredentials(credentialFields)
}

// withoutCredentials removes fields of the spec that an object has.
func withoutCredentials(fields []string) string {
	patch := ""
	for _, field := range fields {
		patch += fmt.Sprintf(` + (has(object.spec.%s) ? [JSONPatch{op: "remove", path: "/spec/%[1]s"}] : [])`, field)
	}
	return patch
}

// mutation returns an admission policy that patches objects, and its binding.
func mutation(name, group, resource, when, patch string) []*unstructured.Unstructured {
	object := func(kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
			"metadata": map[string]any{"name": policyName + "-" + name}, "spec": spec,
		}}
	}
	return []*unstructured.Unstructured{
		object("MutatingAdmissionPolicy", map[string]any{
			"failurePolicy": "Fail", "reinvocationPolicy": "Never",
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{"*"}, "resources": []any{resource}, "operations": []any{"CREATE", "UPDATE"},
			}}},
			"matchConditions": []any{map[string]any{"name": "selected", "expression": when}},
			"mutations":       []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": patch}}},
		}),
		object("MutatingAdmissionPolicyBinding", map[string]any{"policyName": policyName + "-" + name}),
	}
}

// probePause is the time between two probes of the policies.
const probePause = 100 * time.Millisecond

// waitIsolated waits until the API server evaluates the policies. They have no status that could be
// watched, so a dry run shows it.
func waitIsolated(ctx context.Context, client *kube.Client) error {
	k, _ := controllers.FindKind("Kustomization")
	probe := controllers.Object{
		"apiVersion": k.APIVersion(), "kind": k.Kind, "metadata": map[string]any{"name": policyName, "namespace": "default"},
		"spec": map[string]any{
			"interval": "1h", "prune": false, "sourceRef": map[string]any{"kind": "GitRepository", "name": policyName},
			"kubeConfig": map[string]any{"secretRef": map[string]any{"name": policyName}},
		},
	}
	for {
		o, err := kube.DryRun(ctx, client, kube.Of(k), probe, kube.Applier{Manager: policyName})
		if err != nil && !apierrors.IsForbidden(err) { // the sandbox itself rejects the object if it is not suspended
			return fmt.Errorf("isolating the sandbox: %w", err)
		}
		if err == nil && k.Suspension.Is(o) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probePause):
		}
	}
}
