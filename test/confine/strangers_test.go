//go:build linux

package confine_test

import (
	"maps"
	"slices"
	"strings"
)

// stranger is a repository of an untrusted author. In its files, $SERVER is a server of this machine, and $OUTSIDE a file
// outside of the repository.
type stranger struct {
	name  string
	files map[string]string
	// links lists symbolic links by name.
	links map[string]string
	// rendered and tested are expected in the outputs of the commands that render the repository, and of flux test: the
	// reason why the attack is rejected, or an object that is applied if the attack has no effect.
	rendered, tested string
}

const (
	plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: default}\ndata: {a: b}\n"
	// app is a Kustomization that builds ./app.
	app = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: flux-system}
spec:
  interval: 10m0s
  timeout: 10s
  path: ./app
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
  decryption: {provider: sops}
`
	// release is a HelmRelease of the chart in ./chart.
	release = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: release, namespace: default}
spec:
  interval: 10m0s
  timeout: 10s
  chart: {spec: {chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}
`
	chartFile = "apiVersion: v2\nname: chart\nversion: 1.0.0\n"
	// appReady and releaseReady are in the report of flux test if the Kustomization and the HelmRelease are ready.
	appReady, releaseReady = "Kustomization/flux-system/app (", "HelmRelease/default/release ("
)

// with returns a repository with more files, which are given by name and content.
func with(name string, files map[string]string, more []string) stranger {
	for pair := range slices.Chunk(more, 2) {
		files[pair[0]] = pair[1]
	}
	return stranger{name: name, files: files}
}

// built returns a repository with a kustomization in ./app, and more files.
func built(name, kustomization string, more ...string) stranger {
	return with(name, map[string]string{cluster + "/app.yaml": app, "app/kustomization.yaml": kustomization, "app/plain.yaml": plain}, more)
}

// released returns a repository with a chart that has a template, and more files.
func released(name, template string, more ...string) stranger {
	return with(name, map[string]string{cluster + "/release.yaml": release, "chart/Chart.yaml": chartFile, "chart/templates/a.yaml": template}, more)
}

// applied returns a repository with manifests in ./app, and more files.
func applied(name, manifests string, more ...string) stranger {
	return with(name, map[string]string{cluster + "/app.yaml": app, "app/objects.yaml": manifests}, more)
}

// waiting returns a repository whose pods have started when the Kustomization is ready.
func waiting(name, manifests string) stranger {
	return applied(name, manifests, cluster+"/app.yaml", app+"  wait: true\n")
}

// wants sets the texts in the outputs.
func (s stranger) wants(rendered, tested string) stranger {
	s.rendered, s.tested = rendered, tested
	return s
}

// linked adds a symbolic link.
func (s stranger) linked(name, to string) stranger {
	s.links = map[string]string{name: to}
	return s
}

// sourced returns a repository with a source that must not be connected to.
func sourced(name, kind, spec string) stranger {
	version := "source.toolkit.fluxcd.io/v1"
	if kind == "ImageRepository" {
		version = "image.toolkit.fluxcd.io/v1"
	}
	return applied(name, "apiVersion: "+version+"\nkind: "+kind+"\nmetadata: {name: source, namespace: flux-system}\nspec: {interval: 1h, timeout: 5s, "+spec+"}\n").
		wants("source", kind+"/flux-system/source in app/objects.yaml: the sandbox has no network")
}

// encrypted returns a repository with a document that SOPS encrypted with a key. why is the reason why flux does not decrypt
// it.
func encrypted(name, key, why string) stranger {
	return built("a document that is encrypted with "+name, "resources: [secret.yaml]\n", "app/secret.yaml",
		`apiVersion: v1
kind: Secret
metadata: {name: secret, namespace: default}
stringData:
  a: ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:A=,type:str]
sops:
`+key+`  lastmodified: "2024-01-01T00:00:00Z"
  mac: ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:A=,type:str]
  encrypted_regex: ^(data|stringData)$
  version: 3.9.0
`).wants(why, "cannot get sops data key")
}

// refused is why kustomize runs no program.
const refused = "external plugins disabled"

// function returns a repository with a kustomization function in a field of the kustomization.
func function(field, name, run string, more ...string) stranger {
	return built(name, "resources: [plain.yaml]\n"+field+": [f.yaml]\n", slices.Concat([]string{"app/f.yaml",
		"apiVersion: v1\nkind: Function\nmetadata:\n  name: function\n  annotations:\n    config.kubernetes.io/function: |\n      " + run + "\n"}, more)...).wants(refused, refused)
}

// forRemote returns manifests with a Secret that has a kubeconfig with a program.
func forRemote(namespace, manifests string) string {
	return `apiVersion: v1
kind: Secret
metadata: {name: remote, namespace: ` + namespace + `}
stringData:
  value: |
    apiVersion: v1
    kind: Config
    clusters: [{name: c, cluster: {server: "https://$SERVER"}}]
    contexts: [{name: c, context: {cluster: c, user: u}}]
    current-context: c
    users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [marker], interactiveMode: Never}}}]
---
` + manifests + "  kubeConfig: {secretRef: {name: remote}}\n"
}

// deployment returns a Deployment with the image of a program.
func deployment(name, image string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: flux-system}\nspec:\n  selector: {matchLabels: {app: " + name +
		"}}\n  template:\n    metadata: {labels: {app: " + name + "}}\n    spec:\n      containers:\n      - name: manager\n        image: " + image +
		"\n        command: [/bin/sh, -c, touch marker]\n        args: [--storage-path=/root]\n        env: [{name: GIT_SSH_COMMAND, value: touch marker}]\n---\n"
}

// based returns a repository with a base at a URL.
func based(url, rendered string) stranger {
	return built("a base at "+url, "resources: ['"+url+"']\n").wants(rendered, "accumulating resources")
}

// committed returns a repository with a test file that commits a file.
func committed(name, file string) stranger {
	return built(name, "resources: [plain.yaml]\n", "tests/a.fluxtest.yaml",
		"apiVersion: test.fluxkit.dev/v1\nkind: Test\nmetadata: {name: a}\nspec:\n  steps:\n  - name: commit\n    commit: {files: {'"+file+"': 'touch marker'}}\n").wants("plain", `invalid path "`+file)
}

// strangers lists repositories that try to run programs, connect to servers or read files.
func strangers() []stranger {
	all := slices.Concat(runners(), decrypters(), callers(), readers())
	for i := range all {
		files := maps.Clone(all[i].files)
		files[cluster+"/plain.yaml"] = strings.ReplaceAll(plain, "plain", "cluster")
		all[i].files = files
	}
	return all
}

// runners try to run programs.
func runners() []stranger {
	const exec = "exec: {path: /bin/sh, args: [-c, touch marker]}"
	const never, remoteBase = "which is not supported", "remote bases are not allowed"
	return []stranger{
		function("generators", "a generator that runs a program", exec),
		function("transformers", "a transformer that runs a program", exec),
		function("validators", "a validator that runs a program", exec),
		function("generators", "a generator that runs a container", "container: {image: example.com/function, network: true}"),
		function("generators", "a generator in Starlark", "starlark: {path: f.star}", "app/f.star", "load('$OUTSIDE', 'x')\n"),
		built("a plugin in Go", "generators: [f.yaml]\n", "app/f.yaml", "apiVersion: someteam.example.com/v1\nkind: Plugin\nmetadata: {name: f}\n").wants(refused, refused),
		built("a chart of a kustomization", "helmCharts: [{name: x, repo: 'http://$SERVER'}]\n").wants(remoteBase, "must specify --enable-helm"),
		built("a generator that runs Helm", "generators: [f.yaml]\n", "app/f.yaml",
			"apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nname: x\nrepo: http://$SERVER\n").wants("must specify --enable-helm", "must specify --enable-helm"),
		based("ssh://git@$SERVER/base.git", never),
		based("ssh://-oProxyCommand=touch%20marker/base.git", never),
		based("git@$SERVER:base.git", never),
		based("git::ext::sh -c touch% marker", "not a valid directory"),
		based("git::http://$SERVER/base.git?ref=--upload-pack=touch", remoteBase),
		built("a submodule with a program", "resources: [plain.yaml]\n", ".gitmodules", "[submodule \"m\"]\n\tpath = m\n\turl = ext::sh -c touch% marker\n\tupdate = !touch marker\n").wants("plain", appReady),
		built("attributes with a filter", "resources: [plain.yaml]\n", ".gitattributes", "* filter=lfs diff=x merge=x\n", ".lfsconfig", "[lfs]\n\turl = http://$SERVER/lfs\n").wants("plain", appReady),
		built("a bare repository with programs", "resources: [plain.yaml]\n", "app/HEAD", "ref: refs/heads/main\n", "app/config",
			"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch marker\n\tsshCommand = touch marker\n", "app/objects/x", "", "app/refs/x", "").wants("plain", appReady),
		built("programs with the names of those that flux runs", "resources: [plain.yaml]\n", "git", "#!/bin/sh\n", "flux-helper", "#!/bin/sh\n", "flux-sandbox", "#!/bin/sh\n",
			"controllers/kustomize-controller", "#!/bin/sh\n", "kubectl", "#!/bin/sh\n", "bin/flux-helper", "#!/bin/sh\n").wants("plain", appReady),
		waiting("pods with the images of controllers", deployment("kustomize-controller-2", "x/kustomize-controller")+deployment("source-controller-2", "x/source-controller")).wants("source-controller-2", appReady),
		waiting("pods with the images of the sandbox", deployment("etcd", "flux-sandbox")+deployment("kube-apiserver", "registry.k8s.io/kube-apiserver:v1.34.0")).wants("kube-apiserver", appReady),
		waiting("a job that mounts the host", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job, namespace: default}\nspec:\n  template:\n    spec:\n      hostPID: true\n"+
			"      hostNetwork: true\n      restartPolicy: Never\n      volumes: [{name: host, hostPath: {path: /}}]\n      containers:\n      - {name: a, image: busybox, command: [touch, marker], volumeMounts: [{name: host, mountPath: /host}]}\n").wants("job", appReady),
		applied("a Kustomization for a cluster with a program", forRemote("flux-system", strings.NewReplacer("name: app,", "name: remote,", "  decryption: {provider: sops}\n", "", "./app", "./remote").Replace(app)),
			"remote/plain.yaml", plain).wants("remote", "Kustomization/flux-system/remote: applies to another cluster"),
		applied("a HelmRelease for a cluster with a program", forRemote("default", release), "chart/Chart.yaml", chartFile, "chart/templates/a.yaml", plain).wants("release", "HelmRelease/default/release: applies to another cluster"),
		committed("a test file that commits a file above the repository", "../../../hooks/pre-receive"),
		committed("a test file that commits a hook", ".git/hooks/post-receive"),
	}
}

// decrypters try to use the keys of the user.
func decrypters() []stranger {
	const created = "created_at: \"2024-01-01T00:00:00Z\", enc: eA==}]\n"
	return []stranger{
		encrypted("PGP", "  pgp: [{fp: FBC7B9E2A4F9289AC0C1D4843D16CEE4A27381B4, "+created, "gpg was not run"),
		encrypted("Azure Key Vault", "  azure_kv: [{vault_url: \"https://$SERVER\", name: x, version: x, "+created, "not an Azure Key Vault domain"),
		encrypted("Google Cloud KMS", "  gcp_kms: [{resource_id: projects/x/locations/global/keyRings/x/cryptoKeys/x, "+created, "no credentials: set GOOGLE_APPLICATION_CREDENTIALS"),
		encrypted("a profile of AWS", "  kms: [{arn: \"arn:aws:kms:us-east-1:1:key/x\", role: \"arn:aws:iam::1:role/x\", aws_profile: default, "+created, "set AWS_PROFILE to allow it"),
		encrypted("AWS KMS", "  kms: [{arn: \"arn:aws:kms:us-east-1:1:key/x\", "+created, "no EC2 IMDS role found"),
		encrypted("HashiCorp Vault", "  hc_vault: [{vault_address: \"http://$SERVER\", engine_path: transit, key_name: x, "+created, "a token is only sent to the address in VAULT_ADDR"),
		encrypted("an SSH key", "  age: [{recipient: \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE\", enc: x}]\n", "set SOPS_AGE_SSH_PRIVATE_KEY_FILE to use an SSH key"),
	}
}

// callers try to connect to servers.
func callers() []stranger {
	// In the network of the sandbox, no server listens on the address.
	const notPublic, remoteBase, refusedConnection = "is not public", "remote bases are not allowed", "connection refused"
	return []stranger{
		built("a resource on a server", "resources: ['http://$SERVER/x.yaml']\n").wants(remoteBase, "accumulating resources"),
		built("an OpenAPI schema on a server", "resources: [plain.yaml]\nopenapi: {path: 'http://$SERVER/x'}\n").wants(remoteBase, refusedConnection),
		built("a generator's file on a server", "configMapGenerator: [{name: g, files: ['k=http://$SERVER/x']}]\n").wants(remoteBase, refusedConnection),
		built("the metadata service", "resources: ['http://169.254.169.254/latest/meta-data']\n").wants(remoteBase, "accumulating resources"),
		sourced("a GitRepository on a server", "GitRepository", `url: "http://$SERVER/fleet.git"`),
		sourced("a GitRepository of Azure on a server", "GitRepository", `url: "https://$SERVER/fleet.git", provider: azure`),
		sourced("an OCIRepository on a server", "OCIRepository", `url: "oci://$SERVER/fleet", insecure: true`),
		sourced("an OCIRepository of AWS on a server", "OCIRepository", `url: "oci://$SERVER/fleet", provider: aws`),
		sourced("a Bucket on a server", "Bucket", `endpoint: "$SERVER", bucketName: fleet, insecure: true, provider: generic`),
		sourced("a Bucket of Google Cloud", "Bucket", `endpoint: "storage.googleapis.com", bucketName: fleet, provider: gcp`),
		sourced("an ImageRepository on a server", "ImageRepository", `image: "$SERVER/web", insecure: true`),
		applied("a chart on a server", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: default}\nspec: {interval: 1h, timeout: 5s, url: \"http://$SERVER/charts\"}\n---\n"+
			strings.Replace(release, "chart: ./chart, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}", "chart: web, sourceRef: {kind: HelmRepository, name: charts}", 1)).
			wants(notPublic, "HelmRepository/default/charts in app/objects.yaml: the sandbox has no network"),
		applied("alerts for a server", "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Provider\nmetadata: {name: hook, namespace: flux-system}\nspec: {type: generic, address: \"http://$SERVER/hook\"}\n---\n"+
			"apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Alert\nmetadata: {name: hook, namespace: flux-system}\nspec: {providerRef: {name: hook}, eventSources: [{kind: Kustomization, name: '*'}, {kind: GitRepository, name: '*'}]}\n").
			wants("hook", "Alert/flux-system/hook: suspended in the temporary sandbox"),
		applied("a webhook of the API server", "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: hook}\nwebhooks:\n- name: hook.example.com\n"+
			"  clientConfig: {url: \"https://$SERVER/hook\"}\n  rules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]\n  sideEffects: None\n  failurePolicy: Fail\n  timeoutSeconds: 1\n  admissionReviewVersions: [v1]\n",
			cluster+"/after.yaml", strings.NewReplacer("name: app,", "name: after,", "./app", "./after").Replace(app)+"  dependsOn: [{name: app}]\n", "after/plain.yaml", plain).
			wants("hook", `failed calling webhook "hook.example.com"`),
		released("a chart with a dependency on a server", plain, "chart/Chart.yaml", chartFile+"dependencies: [{name: x, version: 1.0.0, repository: 'http://$SERVER/charts'}]\n").
			wants(notPublic, "HelmChart/flux-system/default-release: the sandbox has no network"),
		released("a chart whose schema refers to a server", plain, "chart/values.schema.json", `{"$schema": "http://$SERVER/schema", "$ref": "http://$SERVER/values.json"}`).wants(notPublic, refusedConnection),
		released("a chart that resolves names", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: resolved}\ndata: {a: '{{ getHostByName \"example.com\" }}'}\n").wants("resolved", releaseReady),
	}
}

// readers try to read files.
func readers() []stranger {
	const above = "../../../../../../../../$OUTSIDE"
	return []stranger{
		built("a resource outside of the repository", "resources: ['$OUTSIDE']\n").wants("cannot be absolute", "cannot be absolute"),
		built("a resource above the repository", "resources: [plain.yaml, '"+above+"']\n").wants("in the source", "fs-security-constraint"),
		built("a generator's file outside of the repository", "configMapGenerator: [{name: g, files: ['$OUTSIDE']}]\n").wants("loading KV pairs", "loading KV pairs"),
		built("a generator's variables above the repository", "configMapGenerator: [{name: g, envs: ['"+above+"']}]\n").wants("loading KV pairs", "loading KV pairs"),
		built("a link to a file", "resources: [link.yaml]\n").linked("app/link.yaml", "$OUTSIDE").wants("app/link.yaml not found in the source", "open app/link.yaml: no such file"),
		built("a link to the environment", "configMapGenerator: [{name: g, files: [environ]}]\n").linked("app/environ", "/proc/self/environ").wants("app/environ", "loading KV pairs"),
		built("a link to a directory", "resources: [link]\n").linked("app/link", "/etc").wants("app/link not found in the source", "open app/link: no such file"),
		stranger{name: "a Kustomization whose path is outside of the repository", files: map[string]string{cluster + "/app.yaml": strings.Replace(app, "./app", "../../../../../../../../etc", 1)}}.
			wants(`cannot build "etc"`, "kustomization path not found"),
		based("file://$OUTSIDE", "which is not supported"),
		released("a template that reads files", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: files}\ndata: {a: {{ .Files.Get \"$OUTSIDE\" | quote }}, b: {{ .Files.Get \""+above+"\" | quote }}}\n").wants("files", releaseReady),
		released("a template that reads variables", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: variables}\ndata: {a: {{ env \"CANARY\" | quote }}}\n").wants(`function "env" not defined`, `function "env" not defined`),
		released("a chart with a link", plain).linked("chart/templates/link.yaml", "$OUTSIDE").wants("plain", releaseReady),
		released("a chart with a dependency outside of the repository", plain, "chart/Chart.yaml", chartFile+"dependencies: [{name: x, version: 1.0.0, repository: 'file:///etc'}]\n").wants("stat chart/etc", "no chart found at '/chart/etc'"),
		released("a chart whose schema refers to a file", plain, "chart/values.schema.json", `{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "file://$OUTSIDE"}`).wants("a schema cannot refer to files", "permission denied"),
		released("values outside of the repository", plain, cluster+"/release.yaml", strings.Replace(release, "chart: ./chart,", "chart: ./chart, valuesFiles: ['"+above+"'],", 1)).wants("reading a values file", "values file"),
		built("a link to a test file", "resources: [plain.yaml]\n").linked("tests/a.fluxtest.yaml", "$OUTSIDE").wants("plain", appReady),
		built("a link to the cluster's directory", "resources: [plain.yaml]\n").linked(cluster+"/flux-system/link.yaml", "$OUTSIDE").wants("plain", appReady),
	}
}
