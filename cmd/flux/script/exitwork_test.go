package script_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// work has the arguments with which commands do their work, by command. A
// command without an entry has that of its parent.
var work = map[string]string{
	"flux get": "-A", "flux export": "-A",
	"flux reconcile": "--all", "flux suspend": "--all", "flux resume": "--all", "flux wait": "--all",
	"flux delete": "ks/app --silent",
	"flux tree":   "ks/app", "flux history": "ks/app", "flux rollback": "ks/app --yes", "flux migrate owner": "ks/app --yes", "flux trace": "ks/app", "flux status": "app", "flux trigger receiver": "app",
	"flux build artifact": "--path deploy --output artifact.tgz", "flux build artifact-generator": "app", "flux diff artifact-generator": "app",
	"flux build helmrelease": "app", "flux build kustomization": "app --path deploy",
	"flux diff artifact": "oci://127.0.0.1:1/app:1 --path deploy", "flux diff clusters": "one two", "flux diff helmrelease": "app", "flux diff kustomization": "app --path deploy",
	"flux rehearse":          "--from-cluster --from 2.9",
	"flux bisect":            "--good none",
	"flux record":            "--output -",
	"flux sandbox pull":      "--version 1.0.0 --releases http://127.0.0.1:1",
	"flux replay":            "none.gz",
	"flux debug helmrelease": "app --show-status", "flux debug kustomization": "app --show-status",
	"flux uninstall":      "--silent",
	"flux list artifacts": "oci://127.0.0.1:1/app", "flux pull artifact": "oci://127.0.0.1:1/app:1 --output pulled",
	"flux pull source":   "app --list",
	"flux push artifact": "oci://127.0.0.1:1/app:1 --path deploy --source https://example.com/app --revision main@sha1:0", "flux tag artifact": "oci://127.0.0.1:1/app:1 --tag 2",
	"flux plugin install": "app", "flux plugin uninstall": "app", "flux plugin search": "app",
	"flux bootstrap git":              "--url https://127.0.0.1:1/app --username me --password secret --token-auth --silent",
	"flux bootstrap github":           "--hostname 127.0.0.1:1 --owner me --repository app",
	"flux bootstrap gitlab":           "--hostname 127.0.0.1:1 --owner me --repository app",
	"flux bootstrap gitea":            "--hostname 127.0.0.1:1 --owner me --repository app",
	"flux bootstrap bitbucket-server": "--hostname 127.0.0.1:1 --owner me --username me --repository app",
	"flux create alert":               "app --provider-ref chat --event-source Kustomization/*",
	"flux create alert-provider":      "app --type generic --address https://example.com",
	"flux create helmrelease":         "app --source HelmRepository/charts --chart app",
	"flux create image policy":        "app --image-ref app --select-semver 1.x",
	"flux create image repository":    "app --image example.com/app",
	"flux create image update":        "app --git-repo-ref app --git-repo-path . --checkout-branch main --author-name me --author-email me@example.com",
	"flux create kustomization":       "app --source GitRepository/app --path deploy",
	"flux create receiver":            "app --type generic --secret-ref token --resource GitRepository/app",
	"flux create secret git":          "app --url https://example.com/app --username me --password secret",
	"flux create secret githubapp":    "app --app-id 1 --app-installation-id 2 --app-private-key key.pem",
	"flux create secret helm":         "app --username me --password secret",
	"flux create secret notation":     "app --trust-policy-file policy.json --ca-cert-file ca.crt",
	"flux create secret oci":          "app --url example.com --username me --password secret",
	"flux create secret proxy":        "app --address https://proxy.example.com",
	"flux create secret receiver":     "app --type generic --hostname example.com",
	"flux create secret sops":         "app --vault-token secret",
	"flux create secret tls":          "app --ca-crt-file ca.crt",
	"flux create source bucket":       "app --bucket-name app --endpoint example.com --access-key me --secret-key secret",
	"flux create source chart":        "app --source HelmRepository/charts --chart app",
	"flux create source git":          "app --url https://example.com/app --branch main",
	"flux create source helm":         "app --url https://example.com",
	"flux create source oci":          "app --url oci://example.com/app --tag latest",
	"flux create tenant":              "app --with-namespace apps",
}

// workOf returns arguments with which a command sends its requests.
func workOf(path string) []string {
	for at := path; at != "flux"; at = at[:strings.LastIndex(at, " ")] {
		args, ok := work[at]
		switch {
		case !ok:
			continue
		case at == path:
		case at == "flux delete":
			args = "--all --silent"
		case at == "flux rollback", at == "flux migrate owner":
			args = "app --yes"
		case at == "flux tree", at == "flux history", at == "flux trace":
			args = "app"
		}
		return strings.Fields(args)
	}
	return nil
}

// inFolder returns arguments with the paths of the files in dir.
func inFolder(dir string, args []string) []string {
	files := []string{"deploy", "artifact.tgz", "pulled", "policy.json", "ca.crt", "key.pem"}
	args = slices.Clone(args)
	for i, arg := range args {
		if slices.Contains(files, arg) {
			args[i] = filepath.Join(dir, arg)
		}
	}
	return args
}

// writeExitFiles writes the files that arguments in work name.
func writeExitFiles(t *testing.T, dir string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	for name, text := range map[string]string{
		"deploy/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
		"policy.json":          `{"version": "1.0", "trustPolicies": [{"name": "app", "registryScopes": ["*"], "signatureVerification": {"level": "strict"}, "trustStores": ["ca:app"], "trustedIdentities": ["*"]}]}`,
		"ca.crt":               encoded("CERTIFICATE", certificate),
		"key.pem":              encoded("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
