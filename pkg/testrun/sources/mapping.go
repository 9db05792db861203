package sources

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/git"
	"github.com/fluxkit/flux/internal/git/filetree"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/sandbox"
	"github.com/fluxkit/flux/pkg/build/sourcetree"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/repository"
	"github.com/fluxkit/flux/pkg/repository/mapped"
	"github.com/fluxkit/flux/pkg/testrun/policy"
	"github.com/fluxkit/flux/pkg/testrun/settle"
	"github.com/fluxkit/flux/pkg/testrun/stub"
)

// redirect makes the sources of a mapping fetch from another address, as addressOf returns it.
type redirect struct {
	mapping mapped.Mapping
	policy  policy.Redirect
	address string
}

// mappedFields lists the source fields that do not apply to the mapped content, by resource.
var mappedFields = map[string][]string{
	buckets:          {"secretRef", "certSecretRef", "proxySecretRef", "sts", "serviceAccountName"},
	gitRepositories:  policy.CredentialFields,
	helmRepositories: {"secretRef", "certSecretRef", "provider", "passCredentials"},
	ociRepositories:  {"secretRef", "certSecretRef", "proxySecretRef", "provider", "verify", "serviceAccountName"},
}

// redirected returns the redirection of the sources with a URL.
func redirected(m mapped.Mapping, resource, url, address string, more ...string) redirect {
	patch := fmt.Sprintf(`JSONPatch{op: "add", path: "/spec/url", value: %s}`, strconv.Quote(address))
	for _, field := range more {
		patch += ", " + field
	}
	when := `object.spec.url.matches(` + strconv.Quote(`^`+regexp.QuoteMeta(url)+`/*$`) + `)`
	return redirect{m, policy.Redirect{Resource: resource, When: when, Patch: "[" + patch + "]" + policy.Without(mappedFields[resource])}, address}
}

// The resources of the sources that can be mapped.
const (
	buckets          = "buckets"
	gitRepositories  = "gitrepositories"
	helmRepositories = "helmrepositories"
	ociRepositories  = "ocirepositories"
)

// insecure makes a source use the sandbox registry.
const insecure = `JSONPatch{op: "add", path: "/spec/insecure", value: true}`

// tagged makes a source use a tag.
func tagged(tag string) string {
	return fmt.Sprintf(`JSONPatch{op: "add", path: "/spec/ref", value: {"tag": %s}}`, strconv.Quote(tag))
}

// Server serves mappings in a sandbox.
type Server struct {
	Mappings []mapped.Mapping
	// Inputs holds the inputs of ResourceSetInputProviders.
	Inputs  map[controllers.ID][]map[string]any
	Sandbox *sandbox.Sandbox
	// FakeSecrets serves documents that SOPS has encrypted with stub values.
	FakeSecrets bool
	Now         func() time.Time

	// local serves the Helm repositories and buckets, and redirects holds the redirections of all mappings.
	local     *localServer
	redirects []redirect
}

// Serve serves all mappings, and returns the redirections to them.
func (s *Server) Serve(ctx context.Context) ([]policy.Redirect, error) {
	var all []policy.Redirect
	for i, m := range s.Mappings {
		name := "mapped-" + strconv.Itoa(i)
		serve := s.serveFolder
		if strings.HasPrefix(m.URL, registry.Scheme) {
			serve = s.serveOCI
		}
		found, err := serve(ctx, m, name)
		if err != nil {
			return nil, fmt.Errorf("serving %s for %s: %w", m.Path, m.URL, err)
		}
		kind, restricted := controllers.FindKind(m.Kind)
		for _, to := range found {
			if !restricted || to.policy.Resource == kind.Resource {
				s.redirects, all = append(s.redirects, to), append(all, to.policy)
			}
		}
	}
	for provider, inputs := range s.Inputs {
		to, err := s.serveInputs(ctx, provider, inputs)
		if err != nil {
			return nil, fmt.Errorf("serving the inputs of %s: %w", provider, err)
		}
		all = append(all, to)
	}
	if s.local == nil {
		return all, nil
	}
	return all, s.Sandbox.Reach(ctx, s.local.server.Address)
}

// Close stops the server for Helm repositories and buckets, if it is running.
func (s *Server) Close() error {
	if s.local == nil {
		return nil
	}
	return s.local.server.Close()
}

// Has reports whether the sandbox serves a source, or the image of an ImageRepository.
func (s *Server) Has(object controllers.Object) bool {
	address := addressOf(object) + controllers.Path{"spec.image"}.String(object)
	servers := []string{s.Sandbox.GitURL + "/", registry.Scheme + s.Sandbox.Registry + "/", s.Sandbox.Registry + "/"}
	if s.local != nil {
		servers = append(servers, "http://"+s.local.server.Address+"/")
	}
	return slices.ContainsFunc(servers, func(server string) bool { return strings.HasPrefix(address, server) })
}

// Unused returns the mappings that no source has used.
func (s *Server) Unused(flux map[controllers.ID]settle.Flux) []mapped.Mapping {
	var unused []mapped.Mapping
	for _, m := range s.Mappings {
		used := m.Kind != "" // vendored sources may be unused
		for _, f := range flux {
			url := addressOf(f.Object)
			for _, to := range s.redirects {
				used = used || to.mapping.URL == m.URL && to.mapping.Path == m.Path && to.policy.Resource == f.Kind.Resource && url == to.address
			}
		}
		if !used {
			unused = append(unused, m)
		}
	}
	return unused
}

// serveFolder serves a directory as a Git repository, as a bucket and, if it has charts, as a Helm
// repository: the source kind is known only when the source is applied.
func (s *Server) serveFolder(ctx context.Context, m mapped.Mapping, name string) ([]redirect, error) {
	if m.Kind == controllers.GitRepository || m.Kind == controllers.Bucket {
		return s.servePacked(ctx, m, name)
	}
	var found []redirect
	charts, err := mapped.ChartsIn(ctx, m.Path)
	if err != nil {
		return nil, err
	}
	if (len(charts) > 0 || m.Kind != "") && strings.HasPrefix(m.URL, "http") {
		address, err := s.serveCharts(ctx, name, charts)
		if err != nil {
			return nil, err
		}
		found = append(found, redirected(m, helmRepositories, m.URL, address))
	}
	if m.Kind != "" {
		return found, nil
	}
	if info, err := os.Stat(m.Path); err != nil || !info.IsDir() {
		if len(found) == 0 {
			return nil, hint.Errorf("set a directory or a packed chart", "neither a directory nor a chart")
		}
		return found, err
	}
	git, err := s.serveGit(ctx, m, filetree.Directory(m.Path), name)
	if found = append(found, git); err != nil || !strings.HasPrefix(m.URL, "http") {
		return found, err
	}
	bucket, err := s.serveBucket(ctx, m, filetree.Directory(m.Path), name)
	return append(found, bucket), err
}

// servePacked serves the files in an archive.
func (s *Server) servePacked(ctx context.Context, m mapped.Mapping, name string) ([]redirect, error) {
	content, err := mapped.ReadFile(m.Path)
	if err != nil {
		return nil, err
	}
	tree, err := sourcetree.Archive(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	serve := s.serveGit
	if m.Kind == controllers.Bucket {
		serve = s.serveBucket
	}
	to, err := serve(ctx, m, tree, name)
	return []redirect{to}, err
}

// filesOf returns the files that are served for a mapping.
func (s *Server) filesOf(ctx context.Context, m mapped.Mapping, tree fs.FS) (map[string][]byte, error) {
	files, err := mapped.ReadFiles(ctx, tree)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, m.Added)
	if s.FakeSecrets {
		files = stub.Files(files)
	}
	return files, nil
}

// serveGit serves a tree as a Git repository.
func (s *Server) serveGit(ctx context.Context, m mapped.Mapping, tree fs.FS, name string) (redirect, error) {
	files, err := s.filesOf(ctx, m, tree)
	if err != nil {
		return redirect{}, err
	}
	address, err := s.Sandbox.Serve(ctx, name, files, s.Now())
	served := redirected(m, gitRepositories, m.URL, address, fmt.Sprintf(`JSONPatch{op: "add", path: "/spec/ref", value: {"branch": %s}}`, strconv.Quote(sandbox.Branch)))
	identity := repository.Identity{Remotes: []string{git.ComparableAddress(m.URL)}}
	if m.Ref != nil {
		identity.Own = &unstructured.Unstructured{Object: map[string]any{"kind": controllers.GitRepository, "spec": map[string]any{"url": m.URL, "ref": m.Ref}}}
	}
	served.policy.When = policy.Selects(identity)
	return served, err
}

// access returns the credentials for pushes to the sandbox registry.
func (s *Server) access() registry.Access {
	return registry.Access{Insecure: true, Credentials: s.Sandbox.Credentials()}
}

// serveOCI pushes the content of a mapping to the sandbox registry.
func (s *Server) serveOCI(ctx context.Context, m mapped.Mapping, name string) ([]redirect, error) {
	address := registry.Scheme + s.Sandbox.Registry + "/" + name
	if _, err := os.Stat(filepath.Join(m.Path, registry.LayoutFile)); err == nil && m.Path != "" {
		// The artifact keeps the tags and digests of the layout.
		return []redirect{redirected(m, ociRepositories, m.URL, address, insecure)}, registry.PushLayout(ctx, address, m.Path, s.access())
	}
	charts, err := mapped.ChartsIn(ctx, m.Path)
	if err != nil {
		return nil, err
	}
	if len(charts) == 0 && m.Kind == "" {
		return s.serveArtifact(ctx, m, address)
	}
	found := []redirect{redirected(m, helmRepositories, m.URL, address, insecure)}
	for _, c := range charts {
		tag := strings.ReplaceAll(c.Version, "+", "_")
		if _, err := registry.PushChart(ctx, address+"/"+c.Name+":"+tag, c.Packed, s.Now(), s.access()); err != nil {
			return nil, err
		}
		found = append(found, redirected(m, ociRepositories, m.URL+"/"+c.Name, address+"/"+c.Name, insecure, tagged(tag)))
		if len(charts) == 1 {
			found = append(found, redirected(m, ociRepositories, m.URL, address+"/"+c.Name, insecure, tagged(tag)))
		}
	}
	return found, nil
}

// serveArtifact pushes a directory or an archive as a Flux artifact.
func (s *Server) serveArtifact(ctx context.Context, m mapped.Mapping, address string) ([]redirect, error) {
	var packed bytes.Buffer
	info, err := os.Stat(m.Path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		err = sourcetree.Artifact(ctx, &packed, m.Path, sourcetree.ArtifactOptions{})
	default:
		var content []byte
		content, err = mapped.ReadFile(m.Path)
		packed.Write(content)
	}
	if err != nil {
		return nil, err
	}
	const tag = "mapped"
	notes := map[string]string{registry.RevisionAnnotation: tag, registry.SourceAnnotation: m.URL}
	_, err = registry.Push(ctx, address+":"+tag, packed.Bytes(), notes, s.Now(), s.access())
	return []redirect{redirected(m, ociRepositories, m.URL, address, insecure, tagged(tag))}, err
}
