package fault

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/kube"
)

// maxReview is the maximum size of a request to the webhook.
const maxReview = 16 << 20

// probed is the label of the objects for which the API server asks the webhook as a probe.
const probed = "test.fluxkit.dev/probe"

// webhook registers an admission webhook on loopback, and waits until the API server asks it.
func (i Injector) webhook(ctx context.Context, w *Webhook) (End, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	authority, server, err := newWebhook(i.Now(), w.Deny)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	served := make(chan error, 1)
	if w.Deny == "" {
		served <- errors.Join(listener.Close(), http.ErrServerClosed)
	} else {
		go func() { served <- server.ServeTLS(listener, "", "") }()
	}
	configuration := w.configuration("https://"+listener.Addr().String()+"/", authority)
	removed := i.deleted(configuration)
	end := func(ctx context.Context) error {
		err := errors.Join(removed(ctx), server.Close())
		if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		return err
	}
	if err := i.Sandbox.Reach(ctx, listener.Addr().String()); err != nil {
		return end, err
	}
	if err := kube.Apply(ctx, i.Client, []*unstructured.Unstructured{configuration}); err != nil {
		return end, err
	}
	probe := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": name, "namespace": "default", "labels": map[string]any{probed: "true"},
	}}
	return end, i.until(ctx, kube.BuiltIn("v1", "ConfigMap"), probe, func(_ map[string]any, err error) bool { return err != nil })
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

// newWebhook returns a server that refuses all objects, and the certificate that verifies it.
func newWebhook(now time.Time, message string) (authority []byte, _ *http.Server, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), &http.Server{
		Handler:     refuse(message),
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}},
	}, nil
}

// refuse answers admission reviews.
func refuse(message string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Request    struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&review); err != nil {
			http.Error(w, "an AdmissionReview is expected", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the API server reports an incomplete answer
			"apiVersion": review.APIVersion, "kind": review.Kind,
			"response": map[string]any{"uid": review.Request.UID, "allowed": false, "status": map[string]any{"code": http.StatusForbidden, "message": message}},
		})
	})
}
