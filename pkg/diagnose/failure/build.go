package failure

import (
	"path"
	"strings"
)

// buildErrors lists the errors of kustomize and of the kustomize package of Flux.
var buildErrors = []prototype{
	{Type: NoEntry, pattern: `accumulation err='accumulating resources from '(?P<key>[^'\n]+)': open (?P<address>\S+): no such file or directory'`},
	{Type: NoEntry, pattern: `failed to get the patch file from path\((?P<key>[^)\n]+)\): open (?P<address>\S+): no such file or directory`},
	{Type: NoEntry, pattern: `loading KV pairs: (?:file|env source) (?:sources|files): \[(?P<key>[^\]\n]+)\]: open (?P<address>\S+): no such file or directory`},
	{Type: NoEntry, pattern: `accumulating components: loader\.New "must build at directory: not a valid directory: evalsymlink failure on '(?P<address>[^'\n]+)'`},
	{Type: NoBase, pattern: `accumulation err='accumulating resources from '(?P<address>[a-z]+://[^'\n]+)': (?P<detail>[^\n]*?)': (?:must build|failed to run|URL is)`},
	{Type: Outside, pattern: `accumulation err='accumulating resources from '(?P<key>[^'\n]+)': fs-security-constraint `},
	{Type: Incomplete, pattern: `accumulation err='accumulating resources from '(?P<address>[^'\n]+)': (?P<detail>missing metadata\.name)`},
	{Type: Incomplete, pattern: `failed to decode Kubernetes apiVersion, kind and name from: (?P<detail>[^\n]*)`},
	{Type: SameID, pattern: `accumulation err='merging resources from '[^'\n]+': may not add resource with an already registered id: (?P<kind>` + kindPart + `)\.[^/\s]*/(?P<name>` + namePart + `)\.`},
	{Type: SameID, pattern: `namespace transformation produces ID conflict: \[[^\n]*?"kind":"(?P<kind>` + kindPart + `)"[^\n]*?"name":"(?P<name>` + namePart + `)"`},
	{Type: Recursion, pattern: `cycle detected: candidate root '(?P<address>[^'\n]+)' contains visited root `},
	{Type: Malformed, pattern: `failed to decode Kubernetes YAML from (?P<address>\S+): (?:MalformedYAMLError: )?(?:yaml: )?(?P<detail>[^\n]*)`},
	{Type: Malformed, pattern: `MalformedYAMLError: (?:yaml: )?(?P<detail>[^\n]*?) in File: (?P<address>[^\s']+)`},
	{Type: NoTarget, pattern: `no resource matches strategic merge patch "(?P<kind>` + kindPart + `)\.[^/\s]*/(?P<name>` + namePart + `)\.`},
	{Type: NoTarget, pattern: `nothing selected by (?P<kind>` + kindPart + `)\.[^/\s]*/(?P<name>` + namePart + `)\.`},
	{Type: Patch, pattern: `error in (?:add|copy|move|remove|replace|test) for path: (?P<detail>[^\n]*)`, steps: []Step{Build}},
	{Type: Unsupported, pattern: `must specify --enable-helm`, steps: []Step{Build}},
	{Type: NotDirectory, pattern: `open (?P<address>\S+)/kustomization\.yaml: not a directory`},
}

// Kustomization returns the path of the kustomization.yaml that lists the missing entry, or "" if it cannot be derived from the
// message.
func (f Failure) Kustomization() string {
	if f.Type != NoEntry || f.Address == "" || f.Name == "" || path.IsAbs(f.Name) {
		return ""
	}
	dir, ok := strings.CutSuffix("/"+path.Clean(f.Address), "/"+path.Clean(f.Name))
	if !ok { // a cleaned path does not end with an entry that contains ".."
		return ""
	}
	return path.Join(strings.TrimPrefix(dir, "/"), "kustomization.yaml")
}
