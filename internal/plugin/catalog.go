package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/fluxkit/flux/internal/secrets/redact"
	"github.com/fluxkit/flux/internal/terminal/printable"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/download"
)

// DefaultCatalog is the catalog of the Flux project.
const DefaultCatalog = "https://github.com/fluxcd/plugins/releases/latest/download/"

// textMax is the maximum size of a manifest or index.
const textMax = 10 << 20

const indexFile = "catalog.yaml"

// Catalog reads manifests and downloads from a web server or a directory.
type Catalog struct {
	// Address is the address of the catalog, without credentials and query.
	Address string

	base   *url.URL
	folder string
	client *download.Client
}

// OpenCatalog returns the catalog at an address: a URL, a directory, or the path of catalog.yaml in one of them. It
// sends no request. agent is the User-Agent header of requests.
func OpenCatalog(address, agent string) (*Catalog, error) {
	address = strings.TrimSuffix(address, "/"+indexFile)
	if !strings.Contains(address, "://") {
		return directoryCatalog(address)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("invalid plugin catalog address: %q", redact.Text(address))
	}
	if u.Scheme == "file" {
		return directoryCatalog(directoryOf(runtime.GOOS, u))
	}
	if err := web.CheckEncrypted(u); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path, u.RawPath = u.Path+"/", ""
	}
	return &Catalog{Address: web.Bare(u), base: u, client: download.New(agent)}, nil
}

// directoryOf returns the directory that a file URL refers to on an operating system. On Windows, the path of
// file:///C:/plugins begins with a slash that is not part of it, and the host of file://server/share is the server.
func directoryOf(system string, u *url.URL) string {
	if system != "windows" {
		return u.Path
	}
	name := strings.ReplaceAll(u.Path, "/", `\`)
	switch {
	case u.Host != "" && u.Host != "localhost":
		return `\\` + u.Host + name
	case len(name) > 2 && name[2] == ':':
		return name[1:]
	}
	return name
}

func directoryCatalog(folder string) (*Catalog, error) {
	if filepath.Base(folder) == indexFile {
		folder = filepath.Dir(folder)
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("resolving the directory of the plugin catalog: %w", err)
	}
	return &Catalog{Address: folder, folder: folder, client: download.New("flux")}, nil
}

// Index reads the list of plugins.
func (c *Catalog) Index(ctx context.Context) (*Index, error) {
	data, err := c.read(ctx, indexFile)
	if err != nil {
		return nil, c.unreadable(err)
	}
	index, err := parseIndex(data)
	if err != nil {
		return nil, c.invalid(indexFile, err)
	}
	return index, nil
}

// Manifest reads the manifest of a plugin.
func (c *Catalog) Manifest(ctx context.Context, name string) (*Manifest, error) {
	if !validName(installable(), name) {
		return nil, unknownError(name, nil)
	}
	file := name + ".yaml"
	data, err := c.read(ctx, file)
	if errors.Is(err, fs.ErrNotExist) && c.folder != "" {
		// In the catalog's Git repository, the manifests are in a subdirectory.
		file = path.Join("plugins", file)
		data, err = c.read(ctx, file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, c.unknown(ctx, name)
	}
	if err != nil {
		return nil, c.unreadable(err)
	}
	m, err := parseManifest(data, name)
	if err != nil {
		return nil, c.invalid(file, err)
	}
	return m, nil
}

// unknown returns the error for a plugin that is not in the catalog, or the error of a catalog that cannot be read.
func (c *Catalog) unknown(ctx context.Context, name string) error {
	index, err := c.Index(ctx)
	if err != nil {
		return err
	}
	var others []string
	for _, entry := range index.Plugins {
		others = append(others, entry.Name)
	}
	return unknownError(name, others)
}

// at returns the address of a file in the catalog.
func (c *Catalog) at(file string) string {
	if c.base == nil {
		return filepath.Join(c.folder, filepath.FromSlash(file))
	}
	return c.Address + file
}

func (c *Catalog) read(ctx context.Context, file string) ([]byte, error) {
	body, err := c.open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readAll(body, c.at(file), textMax)
}

// open opens a file by its URL or by its path relative to the catalog.
func (c *Catalog) open(ctx context.Context, reference string) (*download.File, error) {
	u, err := url.Parse(reference)
	if err != nil {
		return nil, fmt.Errorf("invalid URL %q", redact.Text(reference))
	}
	if c.base != nil {
		return c.client.Get(ctx, c.base.ResolveReference(u))
	}
	if u.IsAbs() {
		return c.client.Get(ctx, u)
	}
	return c.openFile(u.Path)
}

// openFile opens a file in the directory of the catalog. Symbolic links cannot lead outside of the
// directory.
func (c *Catalog) openFile(name string) (_ *download.File, err error) {
	root, err := os.OpenRoot(c.folder)
	if err != nil {
		if isMissing(err) {
			// This is not fs.ErrNotExist, because the catalog is missing, not a plugin.
			return nil, errors.New("the directory does not exist")
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	file, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	return &download.File{ReadCloser: file, Size: info.Size()}, nil
}

// address returns the address of a download, without credentials.
func (c *Catalog) address(reference string) string {
	u, err := url.Parse(reference)
	if err != nil {
		return redact.Text(printable.Line(reference))
	}
	if c.base != nil {
		u = c.base.ResolveReference(u)
	}
	if !u.IsAbs() {
		return c.at(u.Path)
	}
	return printable.Line(web.Bare(u))
}
