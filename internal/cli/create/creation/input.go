package creation

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/input"
	"github.com/fluxkit/flux/internal/output"
)

// Put sets a field by its dotted path, unless the value is empty: what is not
// given is left to the controllers' defaults.
func Put(m map[string]any, path string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case bool:
		if !v {
			return
		}
	case time.Duration:
		if v == 0 {
			return
		}
		value = v.String()
	case []string:
		if len(v) == 0 {
			return
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		value = list
	case []any:
		if len(v) == 0 {
			return
		}
	}
	for {
		first, rest, nested := strings.Cut(path, ".")
		if !nested {
			m[path] = value
			return
		}
		below, ok := m[first].(map[string]any)
		if !ok {
			below = map[string]any{}
			m[first] = below
		}
		m, path = below, rest
	}
}

// RefField is a field that refers to an object.
func RefField(r input.Reference) map[string]any {
	m := map[string]any{}
	Put(m, "kind", r.Kind)
	Put(m, "name", r.Name)
	Put(m, "namespace", r.Namespace)
	return m
}

// Versions checks a range of versions.
func (c *Creation) Versions(flag, value string) {
	if value != "" {
		c.CheckFlag(flag, input.Range(value))
	}
}

// Positive checks a duration.
func (c *Creation) Positive(flags map[string]time.Duration) {
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		if flags[flag] < 0 {
			c.Check(fmt.Errorf("--%s has to be more than 0", flag))
		}
	}
}

// Refer reads a reference; an empty one is none.
func (c *Creation) Refer(flag, value string, rules input.Rules) input.Reference {
	if value == "" {
		return input.Reference{}
	}
	ref, err := rules.Parse(value)
	c.CheckFlag(flag, err)
	return ref
}

// Depends reads a list of dependencies.
func (c *Creation) Depends(list []string) []any {
	var refs []any
	for _, s := range list {
		ref, err := input.Dependency(s)
		c.CheckFlag("depends-on", err)
		refs = append(refs, RefField(ref))
	}
	return refs
}

// knownFormat refuses formats that print no object.
func knownFormat(format string) error {
	if format == "wide" {
		return errors.New("output format \"wide\" is for tables: use one of json|yaml|name|jsonpath=…|go-template=…")
	}
	_, err := output.ObjectPrinter(format)
	return err
}

// Pattern checks a regular expression.
func (c *Creation) Pattern(flag, value string) {
	if _, err := regexp.Compile(value); err != nil {
		c.Check(fmt.Errorf("--%s: %q is no regular expression: %w", flag, value, err))
	}
}

// Digest checks the digest of an artifact.
func (c *Creation) Digest(flag, value string) {
	if value == "" {
		return
	}
	algorithm, sum, _ := strings.Cut(value, ":")
	length := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}[algorithm]
	if length == 0 || len(sum) != length || strings.Trim(sum, "0123456789abcdef") != "" {
		c.Check(fmt.Errorf("--%s: %q is no digest, such as sha256: with 64 hexadecimal digits", flag, value))
	}
}

// SourcePath is the value of a flag that is a folder within a source.
type SourcePath string

func (p *SourcePath) String() string { return string(*p) }

// Type is what help shows in place of the value.
func (p *SourcePath) Type() string { return "safeRelativePath" }

// Set refuses a path that leads out of the source.
func (p *SourcePath) Set(s string) error {
	clean, err := input.Path(s)
	*p = SourcePath(clean)
	return err
}

// The kinds that Kustomizations and HelmReleases take their content from.
var (
	ManifestSources = []string{"GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"}
	ChartSources    = []string{"HelmRepository", "GitRepository", "Bucket"}
	WholeCharts     = []string{"OCIRepository", "HelmChart", "ExternalArtifact"}
)

// ReceiverTypes are who can call a Receiver's webhook.
var ReceiverTypes = []string{
	"generic", "generic-hmac", "github", "gitlab", "bitbucket", "harbor", "dockerhub", "quay", "gcr", "nexus", "acr", "cdevents",
}

// Strategies are what makes a new chart out of a source.
var Strategies = []string{"ChartVersion", "Revision"}
