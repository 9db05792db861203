// Command bucket serves the files of a directory as a bucket of an S3-compatible
// store, in memory and on loopback only. It prints its address and exits when its
// standard input is closed, so that it does not outlive the test.
//
//	bucket NAME DIRECTORY
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bucket:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: bucket NAME DIRECTORY")
	}
	store := s3mem.New()
	if err := fill(store, args[0], args[1]); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: gofakes3.New(store).Server(), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return errors.Join(err, server.Close(), <-served)
	}
	_, err = io.Copy(io.Discard, in)
	err = errors.Join(err, server.Close())
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// fill creates a bucket from the files of a directory.
func fill(store gofakes3.Backend, name, folder string) error {
	if err := store.CreateBucket(name); err != nil {
		return fmt.Errorf("creating bucket %s: %w", name, err)
	}
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		key, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		changed := map[string]string{"Last-Modified": info.ModTime().UTC().Format(http.TimeFormat)}
		_, err = store.PutObject(name, filepath.ToSlash(key), changed, f, info.Size(), nil)
		return errors.Join(err, f.Close())
	})
}
