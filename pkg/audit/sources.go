package audit

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"

	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate"
)

// insecureSources finds sources without TLS.
func insecureSources(_ *state, o *Object) []hit {
	k, ok := o.ID.Flux()
	if !ok || k.Fetch.Address == "" {
		return nil
	}
	address := text(o, k.Fetch.Address)
	if text(o, "spec.insecure") == "true" {
		return []hit{{severity: inside(address), field: "spec.insecure", message: "fetched without TLS", fix: "remove it, and use a server with TLS"}}
	}
	return when(strings.HasPrefix(strings.ToLower(address), "http://"), hit{
		severity: inside(address), field: k.Fetch.Address, message: "fetched without TLS: " + host(address), fix: "use https://" + host(address),
	})
}

// inside returns Note for a server in the cluster, otherwise "".
func inside(address string) validate.Severity {
	name, _, _ := strings.Cut(host(address), ":")
	if strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, ".svc.cluster.local") || strings.HasSuffix(name, ".svc.cluster.local.") {
		return validate.Note
	}
	return ""
}

// host returns the host and the port of an address, without credentials.
func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	name, _, _ := strings.Cut(address, "/")
	return name
}

// anyVersion reports whether a range matches all versions.
func anyVersion(version string) bool {
	switch strings.ToLower(strings.TrimSpace(version)) {
	case "", "*", "x", "latest", ">=0", ">=0.0.0", ">0.0.0", ">0":
		return true
	}
	return false
}

// unpinnedCharts finds releases that do not pin the chart version.
func unpinnedCharts(s *state, o *Object) []hit {
	const fix = "set a version, or a range such as 1.x"
	k, flux := o.ID.Flux()
	if !flux {
		return nil
	}
	chart, version := "spec.chart.spec", text(o, "spec.chart.spec.version")
	switch {
	case build.IsHelmRelease(o.Unstructured) && has(o, "spec.chartRef"):
		return unpinnedArtifact(s, o, k)
	case build.IsHelmRelease(o.Unstructured):
	case k.Kind == controllers.HelmChart && o.GetLabels()["helm.toolkit.fluxcd.io/name"] == "":
		chart, version = "spec", text(o, "spec.version")
	default:
		return nil
	}
	if !has(o, chart) {
		return nil
	}
	switch text(o, chart+".sourceRef.kind") {
	case "GitRepository":
		return unpinnedBranch(s, o, k, chart)
	case "HelmRepository":
		message := "the newest version is installed"
		if version != "" {
			message = version + ": " + message
		}
		return when(anyVersion(version), hit{field: chart + ".version", message: message, fix: fix})
	}
	return nil
}

// unpinnedArtifact finds releases whose OCIRepository does not pin a version.
func unpinnedArtifact(s *state, o *Object, k controllers.Kind) []hit {
	for _, id := range k.Source.Targets(o.Unstructured.Object) {
		source := s.byID[id]
		if source == nil || id.Kind != controllers.OCIRepository || has(source, "spec.ref.digest") {
			continue
		}
		if selected := cmp.Or(text(source, "spec.ref.semver"), text(source, "spec.ref.tag")); anyVersion(selected) {
			return []hit{{field: "spec.chartRef", message: id.String() + " selects the newest chart", fix: "set spec.ref of the OCIRepository to a tag, a range such as 1.x, or a digest"}}
		}
	}
	return nil
}

// unpinnedBranch finds releases with a chart from a branch of another repository. Charts in the cluster's own repository change
// with its commits.
func unpinnedBranch(s *state, o *Object, k controllers.Kind, chart string) []hit {
	for _, id := range k.Source.Targets(o.Unstructured.Object) {
		source := s.byID[id]
		if source == nil || s.sources[id] || has(source, "spec.ref.tag") || has(source, "spec.ref.semver") || has(source, "spec.ref.commit") || has(source, "spec.ref.name") {
			continue
		}
		return []hit{{
			field: chart + ".sourceRef", message: "the chart comes from branch " + cmp.Or(text(source, "spec.ref.branch"), "master"),
			fix: "set spec.ref of " + id.String() + " to a tag, a range or a commit",
		}}
	}
	return nil
}

func ociRepositories(_ *state, o *Object) []hit {
	return when(fluxKind(o) == controllers.HelmRepository && text(o, "spec.type") == "oci", hit{
		field: "spec.type", message: "HelmRepositories of type oci are in maintenance mode", fix: "use an OCIRepository, and spec.chartRef of the HelmRelease",
	})
}

// clouds lists the registries of cloud providers, without the public ones such as mirror.gcr.io.
var clouds = []struct {
	provider string
	host     func() *regexp.Regexp
}{
	{"aws", lazy.Regexp(`^\d+\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$`)},
	{"azure", lazy.Regexp(`\.azurecr\.(io|cn|us)$`)},
	{"gcp", lazy.Regexp(`^((us|eu|asia|marketplace)\.)?gcr\.io$|-docker\.pkg\.dev$`)},
}

func registryProviders(_ *state, o *Object) []hit {
	k, ok := o.ID.Flux()
	if provider := text(o, "spec.provider"); !ok || k.Fetch.Address == "" || provider != "" && provider != "generic" || has(o, k.Fetch.Credentials) || text(o, "spec.serviceAccountName") != "" {
		return nil
	}
	address := text(o, k.Fetch.Address)
	if !strings.HasPrefix(address, "oci://") && k.Kind != "ImageRepository" {
		return nil
	}
	name := host(address)
	for _, cloud := range clouds {
		if cloud.host().MatchString(name) {
			return []hit{{field: k.Fetch.Address, message: name + " is used without credentials", fix: "set spec.provider: " + cloud.provider}}
		}
	}
	return nil
}

func gitProviders(_ *state, o *Object) []hit {
	address, secret, provider := "spec.url", "spec.secretRef", "spec.provider"
	switch {
	case fluxKind(o) == controllers.GitRepository && !controllers.IDOf(o.Owner.Object).IsFluxInstance():
	case o.ID.IsFluxInstance() && text(o, "spec.sync.kind") == "GitRepository":
		address, secret, provider = "spec.sync.url", "spec.sync.pullSecret", "spec.sync.provider"
	default:
		return nil
	}
	set := text(o, provider)
	return when(strings.HasPrefix(text(o, address), "https://github.com/") && has(o, secret) && (set == "" || set == "generic"), hit{
		field: address, message: "fetched from GitHub with a token or password in a Secret", fix: "use a GitHub App: " + provider + ": github",
	})
}

// fluxKind returns the kind of a Flux object, or "".
func fluxKind(o *Object) string {
	k, _ := o.ID.Flux()
	return k.Kind
}
