package charts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/pkg/build"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
)

// SourceError is returned if the source of a chart is not available.
type SourceError struct {
	Source controllers.ID
	err    error
}

func (e *SourceError) Error() string {
	if errors.Is(e.err, build.ErrNotFound) {
		return fmt.Sprintf("its source %s is not available", e.Source)
	}
	return fmt.Sprintf("reading its source %s: %s", e.Source, e.err)
}

// Unwrap returns the underlying error.
func (e *SourceError) Unwrap() error { return e.err }

// chartFinder follows the references of a HelmRelease to its chart.
type chartFinder struct {
	ctx     context.Context
	hr      *unstructured.Unstructured
	options Options
}

// ChartOf returns the chart of a HelmRelease or a HelmChart. It uses only the options for finding and reading sources.
func ChartOf(ctx context.Context, o *unstructured.Unstructured, options Options) (*Chart, error) {
	f := &chartFinder{ctx: ctx, hr: o, options: options}
	var release releaseSpec
	var chart chartSpec
	switch {
	case o.GetKind() == controllers.HelmChart:
		if err := build.Decode(o.Object["spec"], &chart); err != nil {
			return nil, fmt.Errorf("reading the spec: %w", err)
		}
		return f.templated(chart, o.GetNamespace(), 0)
	default:
		if err := build.Decode(o.Object["spec"], &release); err != nil {
			return nil, fmt.Errorf("reading the spec: %w", err)
		}
		return f.chart(&release)
	}
}

func (f *chartFinder) chart(spec *releaseSpec) (*Chart, error) {
	if spec.ChartRef != nil {
		return f.referred(*spec.ChartRef)
	}
	if spec.Chart == nil {
		return nil, ErrNoChart
	}
	if spec.Chart.Kind == controllers.OCIRepository {
		return f.generated()
	}
	return f.templated(spec.Chart.Spec, f.hr.GetNamespace(), f.options.ChartGeneration)
}

// generated returns the chart of the OCIRepository that is created for the release.
func (f *chartFinder) generated() (*Chart, error) {
	namespace, name := f.hr.GetNamespace(), f.hr.GetNamespace()+"-"+f.hr.GetName()
	source := controllers.FluxID(controllers.OCIRepository, namespace, name)
	if chart, err := f.inTree(source, chartSpec{Chart: "."}, 0); err == nil {
		return chart, nil // the caller provides its content
	}
	spec, _, err := unstructured.NestedMap(f.hr.Object, "spec", "chart", "spec")
	if err != nil {
		return nil, &SourceError{source, err}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"kind": source.Kind, "spec": spec}}
	o.SetNamespace(namespace)
	o.SetName(name)
	// It is unknown here whether the release has been reviewed.
	return f.fromOCI(source, o, nil)
}

// in returns the reference, with the default namespace if it has none.
func (s sourceReference) in(namespace string) controllers.ID {
	if s.Namespace != "" {
		namespace = s.Namespace
	}
	return controllers.FluxID(s.Kind, namespace, s.Name)
}

func (f *chartFinder) find(source controllers.ID) (*unstructured.Unstructured, error) {
	if f.options.Find == nil {
		return nil, &SourceError{source, build.ErrNotFound}
	}
	o, err := f.options.Find(f.ctx, source)
	if err != nil {
		return nil, &SourceError{source, err}
	}
	return o, nil
}

// referred returns the chart that spec.chartRef references.
func (f *chartFinder) referred(reference sourceReference) (*Chart, error) {
	source := reference.in(f.hr.GetNamespace())
	switch source.Kind {
	case "OCIRepository":
		return f.artifact(source)
	case "HelmChart":
		o, err := f.find(source)
		if err != nil {
			return nil, err
		}
		var spec chartSpec
		if err := build.Decode(o.Object["spec"], &spec); err != nil {
			return nil, &SourceError{source, err}
		}
		return f.templated(spec, source.Namespace, o.GetGeneration())
	}
	return f.inTree(source, chartSpec{Chart: "."}, 0) // an ExternalArtifact contains the chart in its root
}

// artifact returns the chart that an OCIRepository fetches.
func (f *chartFinder) artifact(source controllers.ID) (*Chart, error) {
	if chart, err := f.inTree(source, chartSpec{Chart: "."}, 0); err == nil {
		return chart, nil // the caller provides its content
	}
	o, err := f.find(source)
	if err != nil {
		return nil, err
	}
	return f.fromOCI(source, o, o)
}

// fromOCI returns the chart at the URL of an OCIRepository, which is trusted unless
// Options.Untrusted(named).
func (f *chartFinder) fromOCI(source controllers.ID, o, named *unstructured.Unstructured) (*Chart, error) {
	var spec struct {
		URL      string `json:"url"`
		Insecure bool   `json:"insecure"`
		Ref      struct {
			Tag    string `json:"tag"`
			SemVer string `json:"semver"`
			Digest string `json:"digest"`
		} `json:"ref"`
	}
	if err := build.Decode(o.Object["spec"], &spec); err != nil {
		return nil, &SourceError{source, err}
	}
	chart := &Chart{URL: spec.URL, Tag: spec.Ref.Tag, Digest: spec.Ref.Digest, Version: spec.Ref.SemVer, BuildByDigest: true}
	if chart.Version != "" {
		chart.Tag = "" // in the controller, the range takes precedence
	} else if chart.Tag == "" && chart.Digest == "" {
		chart.Tag = "latest"
	}
	var err error
	chart.Access, err = f.access(o, named)
	chart.Access.Insecure = spec.Insecure
	return chart, err
}

// templated returns the chart that a HelmChart with a generation fetches.
func (f *chartFinder) templated(spec chartSpec, namespace string, generation int64) (*Chart, error) {
	source := spec.SourceRef.in(namespace)
	if source.Kind != controllers.HelmRepository {
		return f.inTree(source, spec, generation)
	}
	o, err := f.find(source)
	if err != nil {
		return nil, err
	}
	var repository struct {
		URL             string `json:"url"`
		Insecure        bool   `json:"insecure"`
		PassCredentials bool   `json:"passCredentials"`
	}
	if err := build.Decode(o.Object["spec"], &repository); err != nil {
		return nil, &SourceError{source, err}
	}
	chart := &Chart{
		URL: repository.URL, Name: spec.Chart, Version: spec.Version, Build: spec.build("", generation),
		ValuesFiles: spec.ValuesFiles, IgnoreMissingValuesFiles: spec.IgnoreMissingValuesFiles,
	}
	if f.options.Local != nil {
		chart.Archive, err = f.options.Local(f.ctx, *chart)
		if !errors.Is(err, build.ErrNotFound) {
			return chart, err
		}
	}
	chart.Access, err = f.access(o, o)
	chart.Access.Insecure, chart.Access.PassCredentials = repository.Insecure, repository.PassCredentials
	return chart, err
}

// build returns the metadata that source-controller appends to the version of the chart for a
// revision of its source and a generation of the HelmChart.
func (s chartSpec) build(revision string, generation int64) string {
	var parts []string
	if s.ReconcileStrategy == "Revision" && VersionMetadata(revision) != "" {
		parts = append(parts, VersionMetadata(revision))
	}
	if len(s.ValuesFiles) > 0 && generation > 0 {
		parts = append(parts, strconv.FormatInt(generation, 10))
	}
	return strings.Join(parts, ".")
}

// inTree returns a chart in a directory or an archive of a source. The paths of its values files are
// relative to the source.
func (f *chartFinder) inTree(source controllers.ID, spec chartSpec, generation int64) (*Chart, error) {
	if f.options.Sources == nil {
		return nil, &SourceError{source, build.ErrNotFound}
	}
	tree, err := f.options.Sources(f.ctx, source)
	if err != nil {
		return nil, &SourceError{source, err}
	}
	chart, err := ChartIn(tree, spec.Chart)
	if err != nil {
		return nil, fmt.Errorf("reading chart %s of %s: %w", spec.Chart, source, err)
	}
	if err := f.provide(chart, chart.Folder, map[string]bool{}); err != nil {
		return nil, fmt.Errorf("reading chart %s of %s: %w", spec.Chart, source, err)
	}
	chart.ReplaceValues = len(spec.ValuesFiles) > 0
	for _, name := range spec.ValuesFiles {
		content, err := fs.ReadFile(tree, sourcetree.Clean(name))
		if errors.Is(err, fs.ErrNotExist) && spec.IgnoreMissingValuesFiles {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a values file of chart %s: paths are relative to %s: %w", spec.Chart, source, err)
		}
		chart.Values = append(chart.Values, content)
	}
	chart.Access.Public, chart.Access.Hosts = f.options.Untrusted != nil && f.options.Untrusted(f.ctx, nil), f.options.Hosts
	revision := ""
	if spec.ReconcileStrategy == "Revision" && f.options.SourceRevision != nil {
		revision = f.options.SourceRevision(f.ctx, source)
	}
	chart.Build = spec.build(revision, generation)
	return chart, nil
}

// access reads the Secrets that a repository references. The repository is trusted unless
// Options.Untrusted(named).
func (f *chartFinder) access(repository, named *unstructured.Unstructured) (Access, error) {
	var spec struct {
		SecretRef     *sourceReference `json:"secretRef"`
		CertSecretRef *sourceReference `json:"certSecretRef"`
	}
	access := Access{Hosts: f.options.Hosts}
	if f.options.Untrusted != nil && f.options.Untrusted(f.ctx, named) {
		access.Public = true
	}
	if err := build.Decode(repository.Object["spec"], &spec); err != nil {
		return access, &SourceError{controllers.IDOf(repository.Object), err}
	}
	for _, reference := range []*sourceReference{spec.SecretRef, spec.CertSecretRef} {
		if reference == nil || f.options.Lookup == nil {
			continue
		}
		secret := controllers.ID{Kind: controllers.Secret, Namespace: repository.GetNamespace(), Name: reference.Name}
		data, err := f.options.Lookup.Data(f.ctx, secret)
		if err != nil && f.ctx.Err() == nil && f.options.Missing != nil && f.options.Missing(secret, err) {
			continue
		}
		if err != nil {
			return access, fmt.Errorf("reading %s of %s: %w", secret, controllers.IDOf(repository.Object), err)
		}
		if err := access.add(data, repository); err != nil {
			return access, fmt.Errorf("reading %s: %w", secret, err)
		}
	}
	if spec.SecretRef != nil || f.options.Login == nil { // as in source-controller, a Secret takes precedence
		return access, nil
	}
	var err error
	access.Username, access.Password, err = f.options.Login(f.ctx, repository)
	return access, err
}

// SameHost reports whether two repositories are on the same host.
func SameHost(a, b *unstructured.Unstructured) bool {
	host := func(o *unstructured.Unstructured) string {
		address, _, _ := unstructured.NestedString(o.Object, "spec", "url")
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" {
			return ""
		}
		return parsed.Scheme + "://" + parsed.Host
	}
	return host(a) != "" && host(a) == host(b)
}

// AccessOf returns the credentials and connection settings for a repository. It uses only the options
// Lookup, Missing and Login.
func AccessOf(ctx context.Context, repository *unstructured.Unstructured, options Options) (Access, error) {
	f := &chartFinder{ctx: ctx, options: options}
	access, err := f.access(repository, repository)
	access.Insecure, _, _ = unstructured.NestedBool(repository.Object, "spec", "insecure")
	return access, err
}

// add adds the credentials of a Secret to the access.
func (a *Access) add(data map[string][]byte, repository *unstructured.Unstructured) error {
	for key, field := range map[string]*[]byte{"ca.crt": &a.CA, "tls.crt": &a.Cert, "tls.key": &a.Key} {
		if value, ok := data[key]; ok {
			*field = value
		}
	}
	if user, ok := data["username"]; ok {
		a.Username, a.Password = string(user), string(data["password"])
	}
	if text, ok := data[".dockerconfigjson"]; ok {
		address, _, _ := unstructured.NestedString(repository.Object, "spec", "url")
		return a.login(text, address)
	}
	return nil
}

// login reads the credentials for a registry from the format that 'docker login' writes.
func (a *Access) login(text []byte, address string) error {
	var config struct {
		Auths map[string]struct {
			Username string `json:"username"`
			Password string `json:"password"`
			Auth     []byte `json:"auth"`
		} `json:"auths"`
	}
	if err := budget.Unmarshal(".dockerconfigjson", text, &config); err != nil {
		return errors.New("invalid registry credentials") // the text itself is secret
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "oci://"), "/")
	for name, login := range config.Auths {
		if name = strings.TrimPrefix(name, "https://"); strings.TrimSuffix(strings.TrimSuffix(name, "/v1/"), "/") != host {
			continue
		}
		a.Username, a.Password = login.Username, login.Password
		if user, password, ok := bytes.Cut(login.Auth, []byte(":")); ok && a.Username == "" {
			a.Username, a.Password = string(user), string(password)
		}
	}
	return nil
}

// ChartIn reads a chart from a tree: an archive, or a directory with the charts that it references by
// file://.
func ChartIn(tree fs.FS, name string) (*Chart, error) {
	name = sourcetree.Clean(name)
	info, err := fs.Stat(tree, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		packed, err := fs.ReadFile(tree, name)
		return &Chart{Archive: packed}, err
	}
	chart := &Chart{Folder: name, Files: map[string][]byte{}}
	return chart, chart.collect(tree, name, budget.New(budget.Default()), map[string]bool{})
}

// collect adds the files of a directory and of the charts that it references.
func (c *Chart) collect(tree fs.FS, folder string, limits *budget.Budget, seen map[string]bool) error {
	if seen[folder] {
		return nil
	}
	seen[folder] = true
	err := fs.WalkDir(tree, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		c.Files[name], err = sourcetree.ReadWithin(limits, tree, name)
		return err
	})
	if err != nil {
		return err
	}
	name := path.Join(folder, "Chart.yaml")
	dependencies, err := LocalCharts(name, c.Files[name])
	if err != nil {
		return fmt.Errorf("reading Chart.yaml: %w", err)
	}
	for _, relative := range dependencies {
		if err := c.collect(tree, sourcetree.Clean(path.Join("/", folder, relative)), limits, seen); err != nil {
			return err
		}
	}
	return nil
}
