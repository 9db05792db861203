package hostile_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	buildRelease = "build helmrelease app -n apps --dry-run --helmrelease-file $FOLDER/hr.yaml"
	release      = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: app, namespace: apps}\n" +
		"spec:\n  interval: 1m\n  chart: {spec: {chart: app, sourceRef: {kind: HelmRepository, name: charts}}}\n"
	encrypted = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\ndata: {a: 'ENC[AES256_GCM,data:eA==,iv:AAAA,tag:AAAA,type:str]'}\n" +
		"sops: {%s, lastmodified: '2024-01-01T00:00:00Z', mac: 'ENC[AES256_GCM,data:eA==,iv:AAAA,tag:AAAA,type:str]', version: 3.9.0}\n"
)

// repositoryAt returns a HelmRelease whose chart is in a repository.
func repositoryAt(address string) map[string]string {
	return map[string]string{"hr.yaml": release + "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: apps}\nspec: {interval: 1m, url: '" + address + "'}\n"}
}

// schema returns a chart with a schema of its values.
func schema(text string) map[string]string {
	files := chart("a: b\n")
	files["chart/values.schema.json"] = text
	return files
}

// words splits a command line.
func words(line string, more ...string) []string { return append(strings.Fields(line), more...) }

// unnamed lists commands on input that refers to a server of the test, or a similar address, which
// must not receive a request.
func unnamed(server string) []other {
	u, _ := url.Parse(server)
	port := u.Port()
	notPublic := func(host string) string {
		return "the host " + host + " is not public: allow it with --allow-remote-bases " + host
	}
	chartOf := buildRelease + " --chart $FOLDER/chart"
	decrypts := func(name, key, want string) other {
		return other{row{name: name, make: encryptedFor(key), dir: true, exit: 1, want: want}, words("diff --base HEAD~1 --path cluster")}
	}
	return []other{
		{row{name: "a Helm repository on loopback", dir: true, make: commit, files: repositoryAt(server), want: notPublic("127.0.0.1")}, words(buildRelease)},
		{row{name: "a registry of charts on loopback", dir: true, make: commit, files: repositoryAt("oci://127.0.0.1:" + port + "/charts"), want: notPublic("127.0.0.1")}, words(buildRelease)},
		{row{name: "a Helm repository at localhost", dir: true, make: commit, files: repositoryAt("http://localhost:" + port), want: notPublic("localhost")}, words(buildRelease)},
		{row{name: "a Helm repository at a numeric address", dir: true, make: commit, files: repositoryAt("http://2130706433:" + port), want: notPublic("2130706433")}, words(buildRelease)},
		{row{name: "a Helm repository at an IPv4-mapped IPv6 address", dir: true, make: commit, files: repositoryAt("http://[::ffff:127.0.0.1]:" + port), want: "is not public"}, words(buildRelease)},
		{row{name: "a Helm repository at the metadata service", dir: true, make: commit, files: repositoryAt("http://169.254.169.254/latest"), want: notPublic("169.254.169.254")}, words(buildRelease)},
		{row{name: "a Helm repository at the metadata service, by name", dir: true, make: commit, files: repositoryAt("http://metadata.google.internal"), want: "metadata.google.internal is not public"}, words(buildRelease)},
		{row{name: "a Helm repository with a file URL", dir: true, make: commit, files: repositoryAt("file:///etc"), want: `invalid repository URL "file:///etc"`}, words(buildRelease)},
		{row{name: "diff --base, a Helm repository that the pull request adds", make: proposes(server), dir: true, exit: 2, want: notPublic("127.0.0.1")}, words("diff --base HEAD~1 --path cluster")},
		{row{name: "an OCIRepository on loopback", dir: true, make: commit, files: map[string]string{"ks.yaml": kustomization, "app/sync.yaml": child("oci://127.0.0.1:" + port + "/app")}, want: notPublic("127.0.0.1")}, words("build kustomization app --dry-run --recursive --kustomization-file $FOLDER/ks.yaml --path $FOLDER/app")},
		{row{name: "a chart schema on loopback", files: schema(`{"$ref": "` + server + `/x"}`), want: notPublic("127.0.0.1")}, words(chartOf)},
		{row{name: "the same, relative to an $id", files: schema(`{"$id": "` + server + `/x", "$ref": "y"}`), want: notPublic("127.0.0.1")}, words(chartOf)},
		{row{name: "the same in the $schema", files: schema(`{"$schema": "` + server + `/x"}`), want: notPublic("127.0.0.1")}, words(chartOf)},
		{row{name: "a chart schema in another file", files: schema(`{"$ref": "file:///proc/self/environ"}`), want: "a schema cannot refer to files"}, words(chartOf)},
		{row{name: "a chart that requires a chart from another repository", files: dependency(server), want: notPublic("127.0.0.1")}, words(chartOf)},
		{row{name: "a chart that requires a chart in another directory", files: dependency("file:///etc"), want: "chart/etc: no such file or directory"}, words(chartOf)},
		{row{name: "a chart that depends on itself", files: dependency("file://."), want: "or depends on itself"}, words(chartOf)},
		{row{name: "a chart that looks up a hostname", files: chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {a: {{ getHostByName \"localhost\" | quote }}}\n")}, words(chartOf)},
		decrypts("a Secret for a Vault on loopback", "hc_vault: [{vault_address: '"+server+"', engine_path: transit, key_name: k, enc: 'vault:v1:x', created_at: '2024-01-01T00:00:00Z'}]", "a token is only sent to the address in VAULT_ADDR"),
		decrypts("a Secret for an Azure Key Vault on loopback", "azure_kv: [{vault_url: '"+strings.Replace(server, "http:", "https:", 1)+"', name: k, version: v, enc: x, created_at: '2024-01-01T00:00:00Z'}]", "not an Azure Key Vault domain"),
		decrypts("a Secret for AWS in a region with a host", "kms: [{arn: 'arn:aws:kms:x@127.0.0.1:"+port+"/?:1:key/x', enc: eA==, created_at: '2024-01-01T00:00:00Z'}]", "not an AWS KMS key ARN"),
		decrypts("a Secret for Google Cloud, without credentials", "gcp_kms: [{resource_id: projects/p/locations/l/keyRings/r/cryptoKeys/k, enc: eA==, created_at: '2024-01-01T00:00:00Z'}]", "no credentials: set GOOGLE_APPLICATION_CREDENTIALS"),
		decrypts("a Secret for a gpg key", "pgp: [{fp: ABCD, enc: x, created_at: '2024-01-01T00:00:00Z'}]", ""),
	}
}

// encryptedFor commits a Secret for a key, and changes it.
func encryptedFor(key string) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		write(t, filepath.Join(folder, "cluster", "sync.yaml"), "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\n"+
			"spec: {interval: 1m, prune: true, path: ./app, decryption: {provider: sops}, sourceRef: {kind: GitRepository, name: flux-system}}\n")
		secret := fmt.Sprintf(encrypted, key)
		write(t, filepath.Join(folder, "app", "secret.yaml"), secret)
		commit(t, folder)
		write(t, filepath.Join(folder, "app", "secret.yaml"), strings.Replace(secret, "data:eA==", "data:eB==", 1))
		commit(t, folder)
	}
}

// dependency returns a chart that refers to a repository of another chart.
func dependency(repository string) map[string]string {
	files := chart("a: b\n")
	files["chart/Chart.yaml"] += "dependencies: [{name: other, version: 1.0.0, repository: '" + repository + "'}]\n"
	return files
}

// child returns a Kustomization of an artifact.
func child(address string) string {
	return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: child, namespace: flux-system}\nspec: {interval: 1m, prune: true, path: ./, sourceRef: {kind: OCIRepository, name: app}}\n" +
		"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: app, namespace: flux-system}\nspec: {interval: 1m, url: '" + address + "', insecure: true, ref: {tag: x}}\n"
}

// proposes commits a cluster's directory, and then a HelmRelease with a repository.
func proposes(address string) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		write(t, filepath.Join(folder, "cluster", "config.yaml"), configMap)
		commit(t, folder)
		write(t, filepath.Join(folder, "cluster", "hr.yaml"), repositoryAt(address)["hr.yaml"])
		commit(t, folder)
	}
}

// drip sends a huge document slowly, one byte at a time, until the client disconnects.
func drip(w http.ResponseWriter, r *http.Request) {
	flusher := http.NewResponseController(w)
	for r.Context().Err() == nil {
		_, _ = w.Write([]byte("#"))
		_ = flusher.Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// servers returns a server on loopback with hostile responses, to which the commands refer.
func servers(t *testing.T, forbidden string) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/slow/", drip)
	mux.HandleFunc("/v2/", drip)
	mux.HandleFunc("/elsewhere/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, forbidden+r.URL.Path, http.StatusFound)
	})
	mux.HandleFunc("/index/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "entries:\n  app: [{version: 1.0.0, urls: ['%s/app.tgz']}]\n", forbidden)
	})
	mux.HandleFunc("/huge/", func(w http.ResponseWriter, _ *http.Request) {
		line := []byte(strings.Repeat("  - {version: 1.0.0, urls: [x]}\n", 1000))
		_, _ = w.Write([]byte("entries:\n  app:\n"))
		for written := 0; written < 200<<20; written += len(line) {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/endless/", func(w http.ResponseWriter, _ *http.Request) {
		for line := make([]byte, 1<<20); ; {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/bomb/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(bomb(9))) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// served lists commands on servers that the user has specified.
func served(server string) []other {
	allow := buildRelease + " --allow-remote-bases 127.0.0.1"
	chartOf := allow + " --chart $FOLDER/chart"
	host := strings.TrimPrefix(server, "http://")
	return []other{
		{row{name: "a Helm repository that redirects to another address", dir: true, make: commit, files: repositoryAt(server + "/elsewhere"), want: "the host 127.0.0.2 is not public"}, words(allow)},
		{row{name: "an index of charts on another address", dir: true, make: commit, files: repositoryAt(server + "/index"), want: "the host 127.0.0.2 is not public"}, words(allow)},
		{row{name: "a schema that redirects to another address", files: schema(`{"$ref": "` + server + `/elsewhere/x"}`), want: "the host 127.0.0.2 is not public"}, words(chartOf)},
		{row{name: "an index of 200 MB", dir: true, make: commit, files: repositoryAt(server + "/huge"), want: "/huge/index.yaml: the file is larger than 64 MiB"}, words(allow)},
		{row{name: "an endless index", dir: true, make: commit, files: repositoryAt(server + "/endless"), want: "/endless/index.yaml: the file is larger than 64 MiB"}, words(allow)},
		{row{name: "an index of YAML aliases", dir: true, make: commit, files: repositoryAt(server + "/bomb"), want: "the YAML aliases expand to more than 1000000 nodes"}, words(allow)},
		{row{name: "a Helm repository that sends one byte at a time, with --timeout 1s", dir: true, make: commit, files: repositoryAt(server + "/slow"), want: "timed out after 1s"}, words(allow, "--timeout", "1s")},
		{row{name: "a registry that sends one byte at a time, with --timeout 1s", want: "timed out after 1s"}, words("pull artifact oci://" + host + "/app:1 --insecure-registry --output $FOLDER/out --timeout 1s")},
		{row{name: "an endless schema", files: schema(`{"$ref": "` + server + `/endless/x"}`), want: "the schema is larger than 8 MiB"}, words(chartOf)},
	}
}

// another address of this machine, to which no command refers
func forbiddenServer(t *testing.T, l *listener) string {
	t.Helper()
	on, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: on, Config: &http.Server{Handler: l, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}
