// Package policy isolates a sandbox with admission policies: they redirect sources to the addresses at which the sandbox
// serves them, and suspend objects that would act outside the sandbox.
package policy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/sandbox"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
)

// Name is the prefix of the policy names, and the name of their field manager.
const Name = "flux-test"

// CredentialFields lists the GitRepository fields that do not apply to the repository that is
// served in its place.
var CredentialFields = []string{"secretRef", "proxySecretRef", "provider", "verify", "serviceAccountName"}

// remoteInputs is true for ResourceSetInputProviders that connect to other machines.
const remoteInputs = "!(object.spec.type in ['" + controllers.StaticProvider + "', 'ExternalArtifact'])"

// outward lists the resources that act outside the cluster, read inputs from there, or change the installation. They are
// suspended if the expression is true. Kustomizations and HelmReleases with a kubeConfig would change another cluster.
var outward = []struct {
	group, resource, when, reason string
}{
	{notificationGroup, "alerts", "true", "suspended in the temporary sandbox: nothing is sent"},
	{notificationGroup, "providers", "true", ""},
	{"image.toolkit.fluxcd.io", automations, "true", "suspended in the temporary sandbox: nothing is pushed"},
	{controllers.OperatorGroup, fluxInstances, "true", ""},
	{controllers.OperatorGroup, inputProviders, remoteInputs, "its inputs are not in the cluster: set them with --inputs"},
	{"helm.toolkit.fluxcd.io", "helmreleases", remoteCluster, appliesElsewhere},
	// waitIsolated expects this policy to be the last one.
	{"kustomize.toolkit.fluxcd.io", "kustomizations", remoteCluster, appliesElsewhere},
}

const (
	sourceGroup       = "source.toolkit.fluxcd.io"
	notificationGroup = "notification.toolkit.fluxcd.io"
	automations       = "imageupdateautomations"
	fluxInstances     = "fluxinstances"
	inputProviders    = "resourcesetinputproviders"

	remoteCluster    = "has(object.spec.kubeConfig)"
	appliesElsewhere = "applies to another cluster, which is not part of the temporary sandbox"
)

// SuspendAnnotation marks the objects that the policies suspend, unlike those that their manifests suspend. Its value is random, so
// that no manifest contains it.
const SuspendAnnotation = "test.fluxkit.dev/suspended"

// Mark is the value of SuspendAnnotation.
var Mark = sync.OnceValue(rand.Text)

// Marked reports whether the policies have suspended an object.
func Marked(o controllers.Object) bool { return controllers.Annotation(o, SuspendAnnotation) == Mark() }

// Suspension is the reason why an object is suspended.
type Suspension struct {
	// Reason is "" for an object that does not need to be reported.
	Reason string
	// Intended is set if the object would act outside the cluster, or if its manifest suspends it.
	Intended bool
}

// SuspensionOf returns why an object is suspended, nil if it is not.
func SuspensionOf(k controllers.Kind, object controllers.Object) *Suspension {
	if !k.Suspension.Is(object) {
		return nil
	}
	if Marked(object) {
		for _, o := range outward {
			if o.resource == k.Resource && o.group == k.Group {
				return &Suspension{o.reason, o.when == "true"}
			}
		}
	}
	return &Suspension{"suspended in its manifest", true}
}

// Redirect makes sources fetch from another address.
type Redirect struct {
	// Group and Resource are those of the source kind. The default of Group is that of Flux sources.
	Group, Resource string
	// When is the CEL expression that selects the sources, and Patch the expression that changes them.
	When, Patch string
}

// Isolation configures the policies of a sandbox.
type Isolation struct {
	// Repository identifies the sources that fetch from Address instead.
	Repository repository.Identity
	Address    string
	Redirects  []Redirect
	// Decrypted removes spec.decryption from Kustomizations, because their files are served with stub values.
	Decrypted bool
	// Received is set if notifications and commits are received in the sandbox. It may be nil.
	Received *Received
	// AllowNetwork is set if the controllers may connect to other machines.
	AllowNetwork bool
	// Inputs holds the inputs of the ResourceSetInputProviders that are not suspended.
	Inputs map[controllers.ID][]map[string]any
}

// Is returns the CEL expression that is true for an object.
func Is(id controllers.ID) string {
	return fmt.Sprintf("object.metadata.namespace == %q && object.metadata.name == %q", id.Namespace, id.Name)
}

// Apply applies the policies with the client guard, and waits until the API server evaluates them. Policies receive
// every object as it is applied, regardless of the patch, chart or variable that produced it.
func (i Isolation) Apply(ctx context.Context, client, guard *kube.Client) error {
	for _, o := range i.policies() {
		if _, err := kube.Upsert(ctx, guard, o, false); err != nil {
			return fmt.Errorf("isolating the sandbox: %w", err)
		}
	}
	return waitIsolated(ctx, client)
}

func (i Isolation) policies() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	if len(i.Repository.Remotes) > 0 || i.Repository.Own != nil {
		objects = append(objects, mutation("source", sourceGroup, "gitrepositories", Selects(i.Repository), redirection(i.Address))...)
	}
	for n, m := range i.Redirects {
		objects = append(objects, mutation("mapped-"+strconv.Itoa(n)+"-"+m.Resource, cmp.Or(m.Group, sourceGroup), m.Resource, m.When, m.Patch)...)
	}
	if i.Decrypted {
		objects = append(objects, mutation("decryption", "kustomize.toolkit.fluxcd.io", "kustomizations", "has(object.spec.decryption)",
			`[JSONPatch{op: "remove", path: "/spec/decryption"}]`)...)
	}
	for _, o := range outward {
		if i.Received != nil {
			objects = append(objects, i.Received.mutation(o.group, o.resource)...)
			if o.group == notificationGroup {
				continue
			}
			if o.resource == automations {
				o.when = i.Received.unpermitted()
			}
		}
		marked := map[string]string{SuspendAnnotation: Mark()}
		patch, suspended := annotate(marked)+` + [JSONPatch{op: "add", path: "/spec/suspend", value: true}]`, "has(object.spec.suspend) && object.spec.suspend"
		if o.group == controllers.OperatorGroup {
			marked[disabledAnnotation] = "disabled"
			patch, suspended = annotate(marked), annotated(disabledAnnotation, "disabled")
		}
		if o.resource == fluxInstances {
			patch += unsent
		}
		if o.resource == inputProviders {
			if i.AllowNetwork {
				continue
			}
			for id := range i.Inputs {
				o.when += " && !(" + Is(id) + ")"
			}
		}
		objects = append(objects, mutation("suspend-"+o.resource, o.group, o.resource, o.when+" && !("+suspended+")", patch)...)
	}
	return objects
}

const (
	// disabledAnnotation suspends an object of flux-operator.
	disabledAnnotation = controllers.OperatorGroup + "/reconcile"
	// unsent makes flux-operator send no events. If a FluxInstance has the component notification-controller, the operator
	// sends events to its domain name, and waits 15 seconds because the name is unknown in the sandbox.
	unsent = ` + [JSONPatch{op: "add", path: "/spec/components", value: ["source-controller"]}]`
)

// annotate returns a patch that sets annotations.
func annotate(annotations map[string]string) string {
	patch := `(has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}])`
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		patch += fmt.Sprintf(` + [JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey(%q), value: %q}]`, key, annotations[key])
	}
	return patch
}

// annotated returns the CEL expression that is true for objects with a value of an annotation.
func annotated(key, value string) string {
	return fmt.Sprintf("has(object.metadata.annotations) && %q in object.metadata.annotations && object.metadata.annotations[%[1]q] == %q", key, value)
}

// references lists the fields of spec.ref.
var references = []string{"branch", "tag", "semver", "name", "commit"}

// Selects returns the CEL expression that is true for the sources that refer to a repository. A source at another
// revision is fetched from its server like all other sources.
func Selects(i repository.Identity) string {
	remotes := slices.Clone(i.Remotes)
	if i.Own != nil {
		remotes = append(remotes, git.ComparableAddress(controllers.Path{"spec.url"}.String(i.Own.Object)))
	}
	slices.Sort(remotes)
	address := "object.spec.url.matches(" + strconv.Quote(addressPattern(slices.Compact(remotes))) + ")"
	if i.Own != nil && i.Own.GetKind() == controllers.GitRepository {
		ref, _, _ := unstructured.NestedMap(i.Own.Object, "spec", "ref")
		return address + " && " + follows(ref)
	}
	var alternatives []string
	for _, branch := range i.Branches {
		alternatives = append(alternatives, follows(map[string]any{"branch": branch}))
		if (controllers.GitReferenceOf(nil) == controllers.GitReference{Branch: branch}) {
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

// addressPattern matches all repository URLs that git.ComparableAddress treats as equal.
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
	return patch + Without(CredentialFields)
}

// Without returns a patch that removes the given spec fields of an object if they exist. The result is appended to
// another patch.
func Without(fields []string) string {
	patch := ""
	for _, field := range fields {
		patch += fmt.Sprintf(` + (has(object.spec.%s) ? [JSONPatch{op: "remove", path: "/spec/%[1]s"}] : [])`, field)
	}
	return patch
}

// Object returns an object of the admission API.
func Object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// mutation returns an admission policy that patches objects, and its binding.
func mutation(name, group, resource, when, patch string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		Object("MutatingAdmissionPolicy", Name+"-"+name, map[string]any{
			"failurePolicy": "Fail", "reinvocationPolicy": "Never",
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{"*"}, "resources": []any{resource}, "operations": []any{"CREATE", "UPDATE"},
			}}},
			"matchConditions": []any{map[string]any{"name": "selected", "expression": when}},
			"mutations":       []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": patch}}},
		}),
		Object("MutatingAdmissionPolicyBinding", Name+"-"+name, map[string]any{"policyName": Name + "-" + name}),
	}
}

// waitIsolated waits until the API server evaluates the policies.
func waitIsolated(ctx context.Context, client *kube.Client) error {
	k, _ := controllers.FindKind(controllers.Kustomization)
	probe := controllers.Object{
		"apiVersion": k.APIVersion(), "kind": k.Kind, "metadata": map[string]any{"name": Name, "namespace": "default"},
		"spec": map[string]any{
			"interval": "1h", "prune": false, "sourceRef": map[string]any{"kind": controllers.GitRepository, "name": Name},
			"kubeConfig": map[string]any{"secretRef": map[string]any{"name": Name}},
		},
	}
	var failed error
	err := Await(ctx, client, kube.Of(k), probe, func(o controllers.Object, err error) bool {
		if err != nil && !apierrors.IsForbidden(err) { // the sandbox rejects the object until the policy suspends it
			failed = fmt.Errorf("isolating the sandbox: %w", err)
		}
		return failed != nil || err == nil && k.Suspension.Is(o)
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	return waitTyped(ctx, client)
}

// waitTyped waits until the API server knows the schemas of all kinds with policies, which it reads some seconds after the CRDs
// are established. Until then, it rejects the objects as unavailable. The probes are invalid, or their kind is not installed.
func waitTyped(ctx context.Context, client *kube.Client) error {
	for _, o := range outward {
		k := controllers.Known[slices.IndexFunc(controllers.Known, func(k controllers.Kind) bool { return k.Group == o.group && k.Resource == o.resource })]
		probe := controllers.Object{"apiVersion": k.APIVersion(), "kind": k.Kind, "metadata": map[string]any{"name": Name, "namespace": "default"}}
		known := func(_ controllers.Object, err error) bool { return !apierrors.IsServiceUnavailable(err) }
		if err := Await(ctx, client, kube.Of(k), probe, known); err != nil {
			return err
		}
	}
	return nil
}

// probePause is the time between two admission probes.
const probePause = 100 * time.Millisecond

// Await repeats the dry run of an object until the response shows that the API server has loaded a policy or a webhook:
// they have no status that could be watched.
func Await(ctx context.Context, client *kube.Client, r kube.Resource, probe controllers.Object, loaded func(controllers.Object, error) bool) error {
	for {
		o, err := kube.DryRun(ctx, client, r, probe, kube.Applier{Manager: Name})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if loaded(o, err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(probePause):
		}
	}
}
