package fault

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/web/loopback"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// maxReview is the maximum size of a request to the webhook.
const maxReview = 16 << 20

// probed is the label of objects that probe whether the API server calls the webhook.
const probed = "test.fluxkit.dev/probe"

// webhook registers an admission webhook on loopback, and waits until the API server calls it.
func (i Injector) webhook(ctx context.Context, w *Webhook) (End, error) {
	server, err := loopback.ServeTLS(ctx, reject(w.Deny), name, i.Now())
	if err == nil && w.Deny == "" {
		err = server.Close() // no server listens at its address
	}
	if err != nil {
		return nil, err
	}
	configuration := w.configuration("https://"+server.Address+"/", server.CA)
	removed := i.deleted(configuration)
	end := func(ctx context.Context) error { return errors.Join(removed(ctx), server.Close()) }
	if err := i.Sandbox.Reach(ctx, server.Address); err != nil {
		return end, err
	}
	if err := kube.Apply(ctx, i.Client, []*unstructured.Unstructured{configuration}); err != nil {
		return end, err
	}
	probe := controllers.Object{"apiVersion": "v1", "kind": controllers.ConfigMap, "metadata": map[string]any{
		"name": name, "namespace": "default", "labels": map[string]any{probed: "true"},
	}}
	return end, policy.Await(ctx, i.Client, kube.BuiltIn("v1", controllers.ConfigMap), probe, func(_ controllers.Object, err error) bool { return err != nil })
}

// configuration returns the registration of the webhook at an address.
func (w *Webhook) configuration(address string, authority []byte) *unstructured.Unstructured {
	hook := func(name, group, resource string) map[string]any {
		return map[string]any{
			"name": name + ".test.fluxkit.dev", "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": int64(5),
			"admissionReviewVersions": []any{"v1"},
			"clientConfig":            map[string]any{"url": address, "caBundle": base64.StdEncoding.EncodeToString(authority)},
			"rules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{"*"}, "resources": []any{resource}, "operations": []any{"CREATE", "UPDATE"},
			}},
		}
	}
	probe, refusing := hook("probe", "", "configmaps"), hook("fault", w.APIGroup, w.Resource)
	probe["objectSelector"] = map[string]any{"matchLabels": map[string]any{probed: "true"}}
	if w.Namespace != "" {
		refusing["namespaceSelector"] = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.Namespace}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": name}, "webhooks": []any{probe, refusing},
	}}
}

// reject returns a handler that denies admission requests.
func reject(message string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Request    struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&review); err != nil {
			http.Error(w, "expected an AdmissionReview", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the API server reports incomplete responses
			"apiVersion": review.APIVersion, "kind": review.Kind,
			"response": map[string]any{"uid": review.Request.UID, "allowed": false, "status": map[string]any{"code": http.StatusForbidden, "message": message}},
		})
	})
}
