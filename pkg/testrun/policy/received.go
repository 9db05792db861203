package policy

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// PushAnnotation marks the ImageUpdateAutomations that may push, because their source is the served
// repository.
const PushAnnotation = "test.fluxkit.dev/push"

// Received redirects objects that act outside the cluster into the sandbox, instead of suspending
// them.
type Received struct {
	// Sink is the URL to which all Providers send, followed by their namespaces and names.
	Sink string
	// Permission is a random value. An ImageUpdateAutomation with this value in PushAnnotation is not
	// suspended, because the sandbox serves its source.
	Permission string
}

// providerFields lists the Provider fields that do not apply to the sink.
var providerFields = []string{"secretRef", "certSecretRef", "proxySecretRef", "proxy", "serviceAccountName", "commitStatusExpr", "channel", "username"}

// mutation returns the admission policy that redirects Providers to the sink.
func (r *Received) mutation(group, resource string) []*unstructured.Unstructured {
	if group != notificationGroup || resource != "providers" {
		return nil
	}
	patch := `[JSONPatch{op: "add", path: "/spec/type", value: "generic"}, JSONPatch{op: "add", path: "/spec/address", value: ` +
		strconv.Quote(r.Sink+"/") + ` + object.metadata.namespace + "/" + object.metadata.name}]`
	return mutation("receive", group, resource, "true", patch+Without(providerFields))
}

// unpermitted returns the CEL expression that is true for automations that may not push.
func (r *Received) unpermitted() string {
	return "!(" + annotated(PushAnnotation, r.Permission) + ")"
}
