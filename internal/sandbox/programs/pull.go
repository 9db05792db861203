// Package programs finds the sandbox binaries or downloads them from a flux release: flux-sandbox, kubectl and the
// controllers for this platform.
package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/fluxkit/flux/internal/cachedir"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/internal/registry"
	"github.com/fluxkit/flux/internal/release/sigstore"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/internal/web/download"
)

// repository is the repository whose workflow builds and signs releases.
const repository = "https://github.com/fluxkit/flux"

// Address is the address of the flux releases.
const Address = repository + "/releases"

const (
	// checksumsMax, bundleMax and archiveMax are the maximum sizes of release files.
	checksumsMax, bundleMax, archiveMax = 1 << 20, 1 << 20, 512 << 20
	// bundleSuffix is the file name suffix of signatures. signature is the name of the file that
	// Pull adds to a verified sandbox; sandboxes without this file were not verified.
	bundleSuffix = ".sigstore.json"
	signature    = "checksums.txt" + bundleSuffix
	// staging is the prefix of temporary directories. Directories of killed processes are
	// removed if nothing was written to them for the duration abandoned.
	staging   = ".pull-"
	abandoned = time.Hour
)

// released matches the pre-release suffix of a released version. Builds of a commit have different suffixes.
var released = lazy.Regexp(`^((alpha|beta|rc)(\.\d+)?)?$`)

// Store is the directory of downloaded sandboxes. It contains one sandbox per version.
type Store struct {
	Dir string
	// Platform is GOOS_GOARCH as in the names of archives.
	Platform string
}

// Open returns the store in the user's cache directory.
func Open() (Store, error) {
	cache, err := cachedir.User("sandbox")
	return Store{string(cache), runtime.GOOS + "_" + runtime.GOARCH}, err
}

// IsRelease reports whether a version is a release version.
func IsRelease(version string) bool {
	v, err := semver.StrictNewVersion(version)
	return err == nil && released().MatchString(v.Prerelease())
}

// At returns the directory of a version.
func (s Store) At(version string) string { return filepath.Join(s.Dir, version) }

// Find returns the path of flux-sandbox for a version of flux, "" if it was not downloaded. For a
// version that was not released, it returns the newest sandbox.
func (s Store) Find(version string) string {
	if complete(s.At(version)) {
		return filepath.Join(s.At(version), helper.Sandbox)
	}
	if IsRelease(version) {
		return ""
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return ""
	}
	var newest *semver.Version
	for _, entry := range entries {
		v, err := semver.StrictNewVersion(entry.Name())
		if err == nil && (newest == nil || newest.LessThan(v)) && complete(s.At(entry.Name())) {
			newest = v
		}
	}
	if newest == nil {
		return ""
	}
	return filepath.Join(s.At(newest.Original()), helper.Sandbox)
}

// complete reports whether a directory contains all sandbox binaries.
func complete(dir string) bool {
	for _, name := range []string{helper.Sandbox, "kubectl", "controllers"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// Release is the release to download from.
type Release struct {
	// Version is the version without a leading "v".
	Version string
	// Address is the address of the releases, or of a mirror.
	Address string
	// Agent is the User-Agent of requests.
	Agent string
	Now   func() time.Time
	// Verify returns an error if the bundle does not contain a signature of the file by the identity.
	// If Verify is nil, only the checksum is compared.
	Verify func(ctx context.Context, file, bundle []byte, by sigstore.Identity) error
	// Started is called before the archive is downloaded, and Downloaded with the downloaded size
	// and the total size, if known.
	Started    func()
	Downloaded func(done, total int64)
}

// Normalize returns a version without a leading "v", or an error if it is not a semantic version.
func Normalize(text string) (string, error) {
	v, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))
	if err != nil {
		return "", hint.Errorf("use a release version, such as 1.0.0", "invalid version %q: %w", text, err)
	}
	return v.String(), nil
}

// Signer returns the identity that signs the checksums of a version: the release workflow, triggered
// by the version tag.
func Signer(version string) sigstore.Identity {
	ref := "refs/tags/v" + version
	return sigstore.Identity{
		Issuer:  "https://token.actions.githubusercontent.com",
		Subject: repository + "/.github/workflows/release.yaml@" + ref, Repository: repository, Ref: ref,
	}
}

// Verified reports whether the signature of a downloaded sandbox was verified.
func (s Store) Verified(version string) bool {
	info, err := os.Lstat(filepath.Join(s.At(version), signature))
	return err == nil && info.Mode().IsRegular()
}

// has reports whether the store contains the sandbox, with a verified signature if required.
func (s Store) has(r Release) bool {
	return complete(s.At(r.Version)) && (r.Verify == nil || s.Verified(r.Version))
}

// Pull downloads a sandbox unless the store already contains it, with a verified signature if required, and reports
// whether it downloaded the sandbox. It verifies the signature of the checksums before it downloads the archive, and
// the checksum of the archive before it unpacks the archive. After an error, the store is unchanged.
func (s Store) Pull(ctx context.Context, r Release) (downloaded bool, err error) {
	if err := s.clean(r.Now()); err != nil {
		return false, err
	}
	if s.has(r) {
		return false, nil
	}
	base, err := url.Parse(strings.TrimSuffix(r.Address, "/"))
	if err == nil {
		err = web.CheckEncrypted(base)
	}
	if err != nil {
		return false, fmt.Errorf("invalid releases address: %w", err)
	}
	r.Address = web.Bare(base)
	client := download.New(r.Agent)
	folder := base.JoinPath("download", "v"+r.Version)
	file := fmt.Sprintf("%s_%s_%s.tar.gz", helper.Sandbox, r.Version, s.Platform)
	want, bundle, err := r.checksum(ctx, client, folder, file)
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return false, fmt.Errorf("creating the directory for downloaded sandboxes: %w", err)
	}
	work, err := os.MkdirTemp(s.Dir, staging)
	if err != nil {
		return false, fmt.Errorf("creating a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	r.Started()
	archive, err := fetch(ctx, client, folder.JoinPath(file), work, want, r.Downloaded)
	if err != nil {
		return false, r.explain(ctx, err)
	}
	unpacked := filepath.Join(work, "unpacked")
	if err := errors.Join(unpack(ctx, archive, unpacked), archive.Close()); err != nil {
		return false, fmt.Errorf("%s: %w", web.Bare(folder.JoinPath(file)), err)
	}
	if err := mark(unpacked, bundle); err != nil {
		return false, fmt.Errorf("storing the signature: %w", err)
	}
	return true, s.install(unpacked, r)
}

// checksum returns the published checksum of the archive and, if it must be verified, the signature of the checksums.
func (r Release) checksum(ctx context.Context, client *download.Client, folder *url.URL, file string) (sum string, bundle []byte, err error) {
	address := folder.JoinPath("flux_" + r.Version + "_checksums.txt")
	lines, err := client.Read(ctx, address.String(), checksumsMax)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, hint.Errorf("see "+r.Address+" for the versions, and set one with --version", "flux release %s not found", r.Version)
	}
	if err != nil {
		return "", nil, r.explain(ctx, err)
	}
	if r.Verify != nil {
		if bundle, err = r.verify(ctx, client, address, lines); err != nil {
			return "", nil, err
		}
	}
	sum, found := download.Checksum(lines, file)
	if !found {
		return "", nil, hint.Errorf("build it in a clone of that version with 'make sandbox controllers'", "flux %s has no sandbox for %s/%s", r.Version, runtime.GOOS, runtime.GOARCH)
	}
	return sum, bundle, nil
}

// verify returns the signature of the checksums after verifying it.
func (r Release) verify(ctx context.Context, client *download.Client, checksums *url.URL, lines []byte) ([]byte, error) {
	address := *checksums
	address.Path += bundleSuffix
	bundle, err := client.Read(ctx, address.String(), bundleMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Errorf("if "+r.Address+" is a mirror, copy the file to it; otherwise do not use the files, and report it",
			"flux %s has no signature: %w", r.Version, err)
	}
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	if err := r.Verify(ctx, lines, bundle, Signer(r.Version)); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("verifying %s: %w", web.Bare(&address), err)
	}
	return bundle, nil
}

// mark stores the signature with the programs. It removes any signature from the archive.
func mark(dir string, bundle []byte) error {
	path := filepath.Join(dir, signature)
	if err := os.RemoveAll(path); err != nil || bundle == nil {
		return err
	}
	return os.WriteFile(path, bundle, 0o644) // the signature is public
}

// fetch downloads the archive to a file and compares its checksum. The file is rewound.
func fetch(ctx context.Context, client *download.Client, address *url.URL, dir, want string, progress func(done, total int64)) (_ *os.File, err error) {
	body, err := client.Get(ctx, address)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	file, err := os.CreateTemp(dir, "archive-")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	_, got, err := body.Copy(file, archiveMax, progress)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", web.Bare(address), err)
	}
	if got != want {
		return nil, hint.Errorf("run the command again; if the checksum still differs, do not use the file and report it",
			"checksum of %s does not match: expected %s, got %s", web.Bare(address), want, got)
	}
	_, err = file.Seek(0, io.SeekStart)
	return file, err
}

// unpack extracts an archive, which must contain all sandbox binaries and only files and directories.
func unpack(ctx context.Context, archive io.Reader, dir string) error {
	left, err := registry.Extract(ctx, archive, dir)
	switch {
	case err != nil:
		return err
	case len(left) > 0:
		return fmt.Errorf("the archive contains %q, which is neither a file nor a directory", left[0])
	case !complete(dir):
		return errors.New("the archive does not contain all sandbox binaries")
	}
	return nil
}

// install moves a sandbox to the directory of its version, unless another process has already done so.
func (s Store) install(unpacked string, r Release) error {
	target := s.At(r.Version)
	if err := os.Rename(unpacked, target); err == nil || s.has(r) {
		return nil
	}
	if err := os.RemoveAll(target); err != nil {
		return fmt.Errorf("removing an incomplete or unverified sandbox: %w", err)
	}
	if err := os.Rename(unpacked, target); err != nil && !s.has(r) {
		return fmt.Errorf("installing the sandbox: %w", err)
	}
	return nil
}

// clean removes the temporary directories of killed processes.
func (s Store) clean(now time.Time) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the directory of downloaded sandboxes: %w", err)
	}
	for _, entry := range entries {
		dir := filepath.Join(s.Dir, entry.Name())
		if !strings.HasPrefix(entry.Name(), staging) || now.Sub(written(dir)) < abandoned {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("removing the files of an interrupted download: %w", err)
		}
	}
	return nil
}

// written returns the time of the last write to a temporary directory or one of its entries.
func written(dir string) time.Time {
	var last time.Time
	names := []string{dir}
	if entries, err := os.ReadDir(dir); err == nil {
		for _, entry := range entries {
			names = append(names, filepath.Join(dir, entry.Name()))
		}
	}
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// explain adds the failed download and a hint to an error without a hint.
func (r Release) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var known *hint.Error
	var disk *fs.PathError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &disk):
		return fmt.Errorf("writing the sandbox of flux %s: %w", r.Version, err)
	}
	return hint.Errorf("check the network connection and HTTPS_PROXY, or set --releases to a mirror", "downloading the sandbox of flux %s: %w", r.Version, err)
}
