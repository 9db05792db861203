package script_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"
)

// serveFolder serves a folder at SERVE until the script ends and writes every
// request as a line of FILE; ca.crt has the certificate of https. What is below
// /hang/ stops in the middle: serve http|https FOLDER FILE
func serveFolder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: serve http|https FOLDER FILE")
	}
	s := &folderServer{root: ts.MkAbs(args[1]), log: ts.MkAbs(args[2]), closing: make(chan struct{})}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it are part of scripts
	if args[0] == "https" {
		server.StartTLS()
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		ts.Check(os.WriteFile(ts.MkAbs("ca.crt"), block, 0o600))
	} else {
		server.Start()
	}
	ts.Setenv("SERVE", server.URL)
	ts.Defer(func() {
		close(s.closing)
		server.Close()
	})
}

type folderServer struct {
	root, log string
	closing   chan struct{}
	mu        sync.Mutex
}

// ServeHTTP implements http.Handler.
func (s *folderServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	err := appendLine(s.log, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	path, hangs := strings.CutPrefix(r.URL.Path, "/hang/")
	if !hangs {
		http.ServeFile(w, r, filepath.Join(s.root, filepath.FromSlash(r.URL.Path)))
		return
	}
	data, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(path)))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data[:len(data)/2]) // the client may be gone
	_ = http.NewResponseController(w).Flush()
	if err := appendLine(s.log, "half of it is sent"); err != nil {
		return
	}
	select {
	case <-s.closing:
	case <-r.Context().Done():
	}
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// offeredManifest is what a catalog says of a plugin.
type offeredManifest struct {
	APIVersion  string           `yaml:"apiVersion"`
	Kind        string           `yaml:"kind"`
	Name        string           `yaml:"name"`
	Description string           `yaml:"description"`
	Homepage    string           `yaml:"homepage"`
	Source      string           `yaml:"source"`
	Bin         string           `yaml:"bin"`
	Versions    []offeredVersion `yaml:"versions"`
}

type offeredVersion struct {
	Version   string              `yaml:"version"`
	Platforms []map[string]string `yaml:"platforms"`
}

// offerPlugin packs a program and adds it to the manifest of a plugin, which it
// makes where there is none; DIGEST is its checksum. The download is at PREFIX,
// or relative to the catalog: offer FOLDER NAME VERSION PROGRAM FORMAT [PREFIX]
func offerPlugin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 5 || len(args) > 6 {
		ts.Fatalf("usage: offer FOLDER NAME VERSION PROGRAM tar.gz|zip|program [PREFIX]")
	}
	folder, name, version, format := ts.MkAbs(args[0]), args[1], args[2], args[4]
	ts.Check(os.MkdirAll(folder, 0o755))
	data, err := packed("flux-"+name, []byte(ts.ReadFile(args[3])), format)
	ts.Check(err)
	file := fmt.Sprintf("flux-%s_%s.%s", name, version, format)
	ts.Check(os.WriteFile(filepath.Join(folder, file), data, 0o600))
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	ts.Setenv("DIGEST", digest)
	address := file
	if len(args) == 6 {
		address = args[5] + "/" + file
	}
	manifest := offeredManifest{
		APIVersion: "cli.fluxcd.io/v1beta1", Kind: "Plugin", Name: name, Description: "The " + name + " plugin",
		Homepage: "https://example.com", Source: "https://example.com/source", Bin: "flux-" + name,
	}
	path := filepath.Join(folder, name+".yaml")
	if text, err := os.ReadFile(path); err == nil {
		ts.Check(yaml.Unmarshal(text, &manifest))
	}
	manifest.Versions = append([]offeredVersion{{version, []map[string]string{
		{"os": runtime.GOOS, "arch": runtime.GOARCH, "url": address, "checksum": digest},
	}}}, manifest.Versions...)
	text, err := yaml.Marshal(manifest)
	ts.Check(err)
	ts.Check(os.WriteFile(path, text, 0o600))
}

// packed is a program as a download of a format.
func packed(name string, program []byte, format string) ([]byte, error) {
	var b bytes.Buffer
	switch format {
	case "zip":
		z := zip.NewWriter(&b)
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(program)
		}
		err = errors.Join(err, z.Close())
		return b.Bytes(), err
	case "tar.gz":
		g := gzip.NewWriter(&b)
		t := tar.NewWriter(g)
		err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(program))})
		if err == nil {
			_, err = t.Write(program)
		}
		err = errors.Join(err, t.Close(), g.Close())
		return b.Bytes(), err
	}
	return program, nil
}

// signalJob sends a signal to a program in the background: signal NAME INT|TERM|HUP|USR1
func signalJob(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "USR1": syscall.SIGUSR1}
	if neg || len(args) != 2 || signals[args[1]] == nil {
		ts.Fatalf("usage: signal NAME INT|TERM|HUP|USR1")
	}
	ts.Check(jobOf(ts, args[0]).cmd.Process.Signal(signals[args[1]]))
}

// killJob ends a command as kill -9 does: sigkill NAME
func killJob(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sigkill NAME")
	}
	j := jobOf(ts, args[0])
	ts.Check(j.cmd.Process.Kill())
	j.ends(ts, args[0], -1)
}
