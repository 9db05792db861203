package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// files contains the entries of a layer in order: directories precede their files.
type files struct {
	date    time.Time
	entries []entry
}

type entry struct {
	header  tar.Header
	content []byte
}

// folder adds a directory.
func (f *files) folder(name string, mode int64, owner int) {
	f.entries = append(f.entries, entry{header: tar.Header{
		Typeflag: tar.TypeDir, Name: name + "/", Mode: mode, Uid: owner, Gid: owner, ModTime: f.date,
	}})
}

// file adds a file owned by root, and its missing directories.
func (f *files) file(name string, mode int64, content []byte) {
	parts := strings.Split(path.Dir(name), "/")
	for i := range parts {
		folder := strings.Join(parts[:i+1], "/")
		if !slices.ContainsFunc(f.entries, func(e entry) bool { return e.header.Name == folder+"/" }) {
			f.folder(folder, 0o755, 0)
		}
	}
	f.entries = append(f.entries, entry{header: tar.Header{
		Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: f.date,
	}, content: content})
}

// open returns a reader of the archive.
func (f *files) open() (io.ReadCloser, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, e := range f.entries {
		if err := w.WriteHeader(&e.header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&buffer), w.Close()
}

// systemFiles returns the files that programs expect on every system: a user with a home directory, a
// directory for temporary files, and certificate authorities.
func (r release) systemFiles() (files, error) {
	f := files{date: r.date}
	f.file("etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/%s:/sbin/nologin\n", user, user, home))
	f.file("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", user))
	f.file("etc/ssl/certs/ca-certificates.crt", 0o644, authorities())
	f.folder("tmp", 0o1777, 0)
	f.folder(path.Dir(home), 0o755, 0)
	f.folder(home, 0o700, user)
	return f, nil
}

// authorities returns Mozilla's certificate authorities as PEM. Certificate authorities with constraints,
// such as the time of issue, are excluded, because the format cannot express them.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return text.Bytes()
}

// releaseFiles returns the programs in a release archive and all licenses.
func (r release) releaseFiles(archive string) (files, error) {
	content, err := unpack(archive)
	if err != nil {
		return files{}, err
	}
	f := files{date: r.date}
	for _, program := range []string{"flux", "flux-helper", "flux-ui"} {
		if content[program] == nil {
			return files{}, fmt.Errorf("%s is missing", program)
		}
		f.file(programs+"/"+program, 0o755, content[program])
	}
	names := make([]string, 0, len(content))
	for name := range content {
		if name == "LICENSE" || strings.HasPrefix(name, "licenses/") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return files{}, errors.New("the licenses are missing")
	}
	slices.Sort(names)
	for _, name := range names {
		f.file("usr/share/doc/flux/"+name, 0o644, content[name])
	}
	return f, nil
}

// unpack returns the contents of the files in an archive by name.
func unpack(archive string) (map[string][]byte, error) {
	compressed, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer compressed.Close() //nolint:errcheck // only read
	text, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, err
	}
	content := map[string][]byte{}
	for r := tar.NewReader(text); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return content, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if content[path.Clean(header.Name)], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}
