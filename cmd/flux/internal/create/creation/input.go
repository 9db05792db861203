package creation

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/internal/terminal/output"
	"github.com/fluxkit/flux/pkg/controllers"
)

// Put sets the field at a dotted path. Empty values are omitted, so that fields without a flag keep
// their API default.
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
	case map[string]any:
		if len(v) == 0 {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	}
	set(m, path, value)
}

// set sets the field at a dotted path.
func set(m map[string]any, path string, value any) {
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

// RefField converts an object reference to a spec field.
func RefField(r controllers.ID) map[string]any {
	m := map[string]any{}
	Put(m, "kind", r.Kind)
	Put(m, "name", r.Name)
	Put(m, "namespace", r.Namespace)
	return m
}

// Text returns the value of a flag.
func (c *Creation) Text(flag string) string { return c.Cmd.Flags().Lookup(flag).Value.String() }

// List returns the values of a flag.
func (c *Creation) List(flag string) []string {
	values, err := c.Cmd.Flags().GetStringSlice(flag)
	c.Check(err)
	return values
}

// Is reports whether a boolean flag is set.
func (c *Creation) Is(flag string) bool {
	on, err := c.Cmd.Flags().GetBool(flag)
	c.Check(err)
	return on
}

// Duration returns the value of a flag.
func (c *Creation) Duration(flag string) time.Duration {
	d, err := c.Cmd.Flags().GetDuration(flag)
	c.Check(err)
	return d
}

// Versions checks that a flag is empty or a semver range.
func (c *Creation) Versions(flag, value string) {
	if value != "" {
		c.CheckFlag(flag, syntax.Range(value))
	}
}

// Positive checks that a duration is not negative; 0 means unset.
func (c *Creation) Positive(flag, value string) {
	if strings.HasPrefix(value, "-") {
		c.Check(fmt.Errorf("--%s must be greater than 0", flag))
	}
}

// Refer parses a reference and returns the zero value for an empty one.
func (c *Creation) Refer(flag, value string, rules syntax.Rules) controllers.ID {
	if value == "" {
		return controllers.ID{}
	}
	ref, err := rules.Parse(value)
	c.CheckFlag(flag, err)
	return ref
}

// Reference returns the value of a flag as a reference in a spec.
func (c *Creation) Reference(flag string, rules syntax.Rules) map[string]any {
	return RefField(c.Refer(flag, c.Text(flag), rules))
}

// References returns the values of a flag as references in a spec.
func (c *Creation) References(flag string, rules syntax.Rules) []any {
	var refs []any
	for _, s := range c.List(flag) {
		refs = append(refs, RefField(c.Refer(flag, s, rules)))
	}
	return refs
}

// Depends parses the values of --depends-on.
func (c *Creation) Depends(list []string) []any {
	var refs []any
	for _, s := range list {
		ref, err := syntax.Dependency(s)
		c.CheckFlag("depends-on", err)
		refs = append(refs, RefField(ref))
	}
	return refs
}

// knownFormat returns an error for formats that cannot print an object.
func knownFormat(format string) error {
	if format == "wide" {
		return output.UnknownFormat(format, "json", "yaml", "name", "jsonpath=…", "go-template=…", "custom-columns=…")
	}
	_, err := output.ObjectPrinter(format)
	return err
}

// Pattern checks a regular expression.
func (c *Creation) Pattern(flag, value string) {
	if _, err := regexp.Compile(value); err != nil {
		c.Check(fmt.Errorf("--%s: invalid regular expression %q: %w", flag, value, err))
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
		c.Check(fmt.Errorf("--%s: invalid digest %q: must be sha256: with 64 hexadecimal digits", flag, value))
	}
}

// SourcePath is a flag value with the path to a directory in a source.
type SourcePath string

func (p *SourcePath) String() string { return string(*p) }

// Type returns the name of the type in help texts.
func (p *SourcePath) Type() string { return "safeRelativePath" }

// Set returns an error for a path outside the source.
func (p *SourcePath) Set(s string) error {
	clean, err := syntax.Path(s)
	*p = SourcePath(clean)
	return err
}

// Kinds of sources, by their use.
var (
	// ManifestSources lists the source kinds of a Kustomization.
	ManifestSources = []string{"GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"}
	// ChartSources lists the source kinds of a HelmChart.
	ChartSources = []string{"HelmRepository", "GitRepository", "Bucket"}
	// ChartRefKinds lists the kinds of spec.chartRef of a HelmRelease.
	ChartRefKinds = []string{"OCIRepository", "HelmChart", "ExternalArtifact"}
)

// ReceiverTypes lists the types of a Receiver.
var ReceiverTypes = []string{
	"generic", "generic-hmac", "github", "gitlab", "bitbucket", "harbor", "dockerhub", "quay", "gcr", "nexus", "acr", "cdevents",
}

// ReconcileStrategies lists the values of spec.reconcileStrategy of a HelmChart.
var ReconcileStrategies = []string{"ChartVersion", "Revision"}
