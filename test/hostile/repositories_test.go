package hostile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {a: x, b: y}\n"

// bomb is YAML in which every level refers to the previous one.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}

// with returns a directory with a ConfigMap, and a kustomization that lists it.
func with(kustomization string, more ...string) map[string]string {
	files := map[string]string{"config.yaml": configMap, "kustomization.yaml": "resources: [config.yaml]\n" + kustomization}
	for i := 0; i+1 < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

func copies() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "- {op: copy, from: /data, path: /data/k%d}\n", i)
	}
	return b.String()
}

// doubling returns replacements that copy each of two values into the other.
func doubling() string {
	var b strings.Builder
	b.WriteString("replacements:\n")
	for i := range 100 {
		from, to := "a", "b"
		if i%2 > 0 {
			from, to = to, from
		}
		fmt.Fprintf(&b, "- source: {kind: ConfigMap, name: config, fieldPath: data.%s}\n  targets:\n  - select: {kind: ConfigMap}\n    fieldPaths: [data.%s]\n    options: {delimiter: x, index: -1}\n", from, to)
	}
	return b.String()
}

// pyramid is a base that every level includes twice.
func pyramid() map[string]string {
	files := map[string]string{"kustomization.yaml": "resources: [level20]\n", "level0/config.yaml": configMap, "level0/kustomization.yaml": "resources: [config.yaml]\n"}
	for i := 1; i <= 20; i++ {
		files[fmt.Sprintf("level%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../left%d, ../right%d]\n", i, i)
		for _, side := range []string{"left", "right"} {
			files[fmt.Sprintf("%s%d/kustomization.yaml", side, i)] = fmt.Sprintf("namePrefix: %s-\nresources: [../level%d]\n", side, i-1)
		}
	}
	return files
}

// sparse writes a file that is large but uses no disk space.
func sparse(name string, size int64) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		write(t, filepath.Join(folder, name), "")
		if err := os.Truncate(filepath.Join(folder, name), size); err != nil {
			t.Fatal(err)
		}
	}
}

func link(to, name string) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func fifo(t *testing.T, folder string) {
	t.Helper()
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// resourceSet returns a build of a ResourceSet with a template.
func resourceSet(template string) map[string]string {
	return with("", "kustomization.yaml", "resources: [set.yaml]\n", "set.yaml", "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: set, namespace: apps}\n"+
		"spec:\n  resourcesTemplate: |\n    # "+template+"\n")
}

// selfCreating returns a build of a ResourceSet that creates another one, with the next number and the same template.
func selfCreating() map[string]string {
	template := `{"apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSet", "metadata": {"name": "set-<< add inputs.num 1 >>", "namespace": "apps"}, "spec": ` +
		`{"inputs": [{"num": << add inputs.num 1 >>, "template": << inputs.template | toJson >>}], "resourcesTemplate": << inputs.template | toJson >>}}`
	return with("", "kustomization.yaml", "resources: [set.yaml]\n", "set.yaml", "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: set-0, namespace: apps}\n"+
		"spec:\n  inputs: [{num: 0, template: '"+template+"'}]\n  resourcesTemplate: '"+template+"'\n")
}

func repositories() []row {
	const images = "images: [{name: none, newTag: x}]\n"
	generator := "configMapGenerator: [{name: g, files: [data]}]\n"
	aliases := "the YAML aliases expand to more than 1000000 nodes"
	memory := "kustomize: requires more than 512 MiB of memory"
	return []row{
		{name: "YAML aliases, 9 levels, in a manifest", files: with("", "config.yaml", configMap+bomb(9)), want: "config.yaml: " + aliases},
		{name: "the same in a manifest that kustomize changes", files: with(images, "config.yaml", configMap+bomb(9)), want: "config.yaml: " + aliases},
		{name: "the same, 60 levels", files: with(images, "config.yaml", configMap+bomb(60)), want: "config.yaml: " + aliases},
		{name: "the same in a kustomization", files: with(bomb(9)), want: "kustomization.yaml: " + aliases},
		{name: "the same in the kustomization of a base", files: with("", "kustomization.yaml", "resources: [base]\n", "base/kustomization.yaml", bomb(9)), want: "base/kustomization.yaml: " + aliases},
		{name: "the same in a patch", files: with("patches: [{path: patch.yaml}]\n", "patch.yaml", configMap+bomb(9)), want: "patch.yaml: " + aliases},
		{name: "the same in the second document", files: with("", "config.yaml", configMap+"---\n"+configMap+bomb(9)), want: "config.yaml: " + aliases},
		{name: "the same in a configuration of transformers", files: with("configurations: [c.yaml]\n", "c.yaml", bomb(9)), want: "c.yaml: " + aliases},
		{name: "the same in an OpenAPI schema", files: with("openapi: {path: schema.yaml}\n", "schema.yaml", bomb(9)), want: "schema.yaml: " + aliases},
		{name: "an alias of one MiB, 1000 times", files: with("", "config.yaml", configMap+"x: &x "+strings.Repeat("y", 1<<20)+"\nz: ["+strings.Repeat("*x,", 1000)+"]\n"), want: "config.yaml: the YAML aliases expand to more than 64 MiB"},
		{name: "an anchor that contains itself", files: with(images, "config.yaml", configMap+"x: &x [*x]\n"), want: `config.yaml: the YAML anchor "x" contains itself`},
		{name: "sequences nested 100,000 deep", files: with("", "config.yaml", configMap+"x: "+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"\n"), want: "exceeded max depth of 10000 in File: config.yaml"},
		{name: "sequences nested 1,000 deep", files: with(images, "config.yaml", configMap+"x: "+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+"\n"), want: "config.yaml: the YAML is nested more than 500 levels deep"},
		{name: "a list of 4 million items", files: with("", "config.yaml", configMap+"x: ["+strings.Repeat("a,", 4_000_000)+"]\n"), want: "config.yaml: the YAML has more than 2000000 nodes"},
		{name: "100,001 objects", files: with("", "config.yaml", many(100_001)), want: "config.yaml: the build has more than 100000 objects"},
		{name: "a generator of 50 MB", files: with(generator), make: sparse("data", 50<<20), want: "data: the file is larger than 32 MiB"},
		{name: "a generator of 1 TB", files: with(generator), make: sparse("data", 1<<40), want: "data: the file is larger than 32 MiB"},
		{name: "a manifest of 1 GB", files: with("resources: [big.yaml]\n", "kustomization.yaml", "resources: [big.yaml]\n"), make: sparse("big.yaml", 1<<30), want: "big.yaml: the file is larger than 32 MiB"},
		{name: "a generator with a link to /dev/zero", files: with(generator), make: link("/dev/zero", "data"), want: "data is a symbolic link"},
		{name: "a generator with a link to /proc/self/environ", files: with(generator), make: link("/proc/self/environ", "data"), want: "data is a symbolic link"},
		{name: "a resource that is a named pipe", files: with("", "kustomization.yaml", "resources: [pipe]\n"), make: fifo, want: "pipe is a named pipe"},
		{name: "a kustomization that includes itself", files: with("", "kustomization.yaml", "resources: [.]\n"), want: "cycle detected"},
		{name: "two kustomizations that include each other", files: map[string]string{"kustomization.yaml": "resources: [a]\n", "a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"}, want: "cycle detected"},
		{name: "a base that is included 2^20 times", files: pyramid(), want: "the file is read more than 1000 times"},
		{name: "a ResourceSet with a text of 100 MB", files: resourceSet("<< repeat 100000000 `x` >>"), flags: []string{"--recursive"}, want: "the template output is larger than 64 MiB"},
		{name: "a ResourceSet with a list of 1 billion numbers", files: resourceSet("<< range until 1000000000 >><< end >>"), flags: []string{"--recursive"}, want: "executing templates: requires more than 512 MiB of memory"},
		{name: "a ResourceSet that loops 10^14 times, with --timeout 1s", files: resourceSet("<< range until 100000 >><< range until 100000 >><< range until 10000 >><< end >><< end >><< end >>"), flags: []string{"--recursive", "--timeout", "1s"}, want: "timed out after 1s"},
		{name: "a ResourceSet whose template includes itself", files: resourceSet("<< define `a` >><< template `a` >><< end >><< template `a` >>"), flags: []string{"--recursive"}, want: "exceeded maximum template depth"},
		{name: "a ResourceSet that reads the environment", files: resourceSet("<< env `CANARY` >>"), flags: []string{"--recursive"}, want: `function "env" not defined`},
		{name: "a ResourceSet that creates another one with its own template", files: selfCreating(), flags: []string{"--recursive"}, want: "ResourceSets are nested more than 100 levels deep"},
		{name: "replacements that double two values 100 times", files: with(doubling()), want: memory},
		{name: "a JSON patch that copies the object into itself 40 times", files: with("patches: [{path: patch.yaml, target: {kind: ConfigMap}}]\n", "patch.yaml", copies()), nightly: true, want: "kustomize: "},
		{name: "a JSON patch with a path of 400 KB", files: with("patches: [{path: patch.yaml, target: {kind: ConfigMap}}]\n", "patch.yaml", "- {op: replace, path: /"+strings.Repeat("a/", 200_000)+", value: x}\n"), want: "kustomization.yaml: replace operation does not apply: doc is missing path: /a/"},
		{name: "a key of 400 KB, twice", files: with("", "config.yaml", configMap+strings.Repeat("k", 400_000)+": 1\n"+strings.Repeat("k", 400_000)+": 2\n"), want: "config.yaml"},
		{name: "the copies with --timeout 1s", files: with("patches: [{path: patch.yaml, target: {kind: ConfigMap}}]\n", "patch.yaml", copies()), flags: []string{"--timeout", "1s"}, want: "timed out after 1s"},
		{name: "the copies, ended by SIGTERM", files: with("patches: [{path: patch.yaml, target: {kind: ConfigMap}}]\n", "patch.yaml", copies()), interrupt: true, exit: 130, want: "interrupted"},
		{name: "a variable of one MiB, 1000 times", files: with("", "config.yaml", strings.Replace(configMap, "x,", `"`+strings.Repeat("${BIG}", 1000)+`",`, 1)), make: variables, flags: []string{"--vars-file", "$FOLDER/vars.env"}, want: "the substituted object is larger than 64 MiB"},
		{name: "a plugin that is a program", files: with("generators: [g.yaml]\n", "g.yaml", "apiVersion: v1\nkind: Exec\nmetadata:\n  name: x\n  annotations: {config.kubernetes.io/function: 'exec: {path: /bin/sh}'}\n"), want: "external plugins disabled"},
		{name: "a chart that kustomize would fetch", files: with("helmCharts: [{name: x, repo: 'https://charts.example.com'}]\n"), want: "kustomization.yaml refers to https://charts.example.com: remote bases are not allowed"},
		{name: "a few aliases (valid)", files: with(images, "config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, labels: &l {a: b}, annotations: *l}\n")},
		{name: "replacements (valid)", files: with("replacements: [{source: {kind: ConfigMap, fieldPath: data.a}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.b]}]}]\n")},
	}
}

func variables(t *testing.T, folder string) {
	t.Helper()
	write(t, filepath.Join(folder, "vars.env"), "BIG="+strings.Repeat("x", 1<<20)+"\n")
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n---\n", i)
	}
	return b.String()
}

// allowed lists bases on allowed hosts; only the first exists.
func allowed(server string) []row {
	flags := func() []string { return []string{"--allow-remote-bases", "127.0.0.1"} }
	return []row{
		{name: "a resource on an allowed host", files: with("", "kustomization.yaml", "resources: ['"+server+"/x.yaml']\n"), flags: flags()},
		{name: "a host that does not listen", files: with("", "kustomization.yaml", "resources: ['http://127.0.0.1:1/x.yaml']\n"), flags: flags(), want: "building Kustomization/flux-system/app: "},
	}
}

// remotes refer to other repositories and hosts, in every field that allows it.
func remotes(server string) []row {
	refused := "remote bases are not allowed"
	never := "which is not supported"
	entry := func(name, field, want string) row { return row{name: name, files: with(field), want: want} }
	return []row{
		{name: "a resource on another host", files: with("", "kustomization.yaml", "resources: ['"+server+"/x.yaml']\n"), want: "kustomization.yaml refers to " + server + "/x.yaml: " + refused},
		{name: "the same with credentials in the address", files: with("", "kustomization.yaml", "resources: ['"+strings.Replace(server, "://", "://user:canary-of-the-environment@", 1)+"/x.yaml']\n"), want: refused},
		{name: "the same in a base", files: with("", "kustomization.yaml", "resources: [base]\n", "base/kustomization.yaml", "Resources: ['"+server+"/x.yaml']\n"), want: "base/kustomization.yaml refers to " + server},
		entry("a component on another host", "components: ['"+server+"/x']\n", refused),
		entry("a patch on another host", "patches: [{path: '"+server+"/x.yaml'}]\n", refused),
		entry("a generator's file on another host", "configMapGenerator: [{name: g, files: ['k="+server+"/x']}]\n", refused),
		entry("an OpenAPI schema on another host", "openapi: {path: '"+server+"/x'}\n", refused),
		entry("CRDs on another host", "crds: ['"+server+"/x']\n", refused),
		{name: "a plugin file on another host", files: with("generators: [g.yaml]\n", "g.yaml", "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: ['k="+server+"/x']\n"), want: refused},
		{name: "a repository on another host", files: with("", "kustomization.yaml", "resources: ['git::"+server+"/org/repo//base?ref=main']\n"), want: refused},
		entry("a repository on GitHub", "bases: ['github.com/org/repo//base']\n", "--allow-remote-bases github.com"),
		entry("a repository over SSH", "bases: ['git@github.example:org/repo']\n", never),
		entry("another repository on this machine", "bases: ['file:///etc']\n", never),
		entry("the metadata service", "bases: ['http://169.254.169.254/latest/meta-data']\n", refused),
		{name: "the metadata service, with another allowed host", files: with("bases: ['http://169.254.169.254/latest']\n"), flags: []string{"--allow-remote-bases", "github.com"}, want: refused},
	}
}
