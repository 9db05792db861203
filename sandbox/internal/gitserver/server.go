// Package gitserver serves bare Git repositories on loopback addresses over HTTP, HTTPS and SSH, like a Git host.
package gitserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
	"github.com/fluxkit/flux/sandbox/internal/fault"
	"github.com/fluxkit/flux/sandbox/internal/loopback"
)

// Config configures Run.
type Config struct {
	// Root is the directory with the repositories, keys and credentials. It is created if it is missing.
	Root string
	// HTTPAddr, HTTPSAddr and SSHAddr are loopback addresses such as 127.0.0.1:0. Protocols with an empty address are
	// not served.
	HTTPAddr, HTTPSAddr, SSHAddr string
	// Ready is called with the chosen addresses once all listeners are open.
	Ready func(Addresses)
	// Log receives one line for each service and rejected request. Nil discards them.
	Log io.Writer
}

type server struct {
	repositories Repositories
	credentials  credentials.File
	log          *log.Logger
	busy         sync.WaitGroup // connections with their pending requests and children
}

// Run serves until ctx is canceled, then closes every listener and connection and waits for its goroutines and the
// programs it has started. The 'git pack-objects' of an interrupted clone, which only reads, can end a moment later.
func Run(ctx context.Context, cfg Config) error {
	repositories, err := Open(cfg.Root)
	if err != nil {
		return err
	}
	cfg.Root = repositories.root
	if err := os.MkdirAll(cfg.Root, 0o700); err != nil {
		return fmt.Errorf("creating the git server's directory: %w", err)
	}
	lock, err := takeRoot(ctx, cfg.Root)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	s := &server{
		repositories: repositories,
		credentials:  credentials.In(cfg.Root),
		log:          log.New(cfg.Log, "git: ", log.LstdFlags|log.LUTC|log.Lmsgprefix),
	}
	fronts, err := s.listen(ctx, cfg)
	if err != nil {
		return err
	}
	addresses, err := describe(cfg.Root, fronts)
	if err == nil {
		err = addresses.write(cfg.Root)
	}
	if err != nil {
		for _, f := range fronts {
			err = errors.Join(err, f.listener.Close())
		}
		return err
	}
	defer forgetAddresses(cfg.Root)
	if cfg.Ready != nil {
		cfg.Ready(addresses)
	}
	return s.serve(ctx, fronts)
}

// front is a listener and the function that serves its protocol.
type front struct {
	scheme   string
	listener net.Listener
	serve    func(ctx context.Context, listener net.Listener) error
}

func (s *server) listen(ctx context.Context, cfg Config) (fronts []front, err error) {
	defer func() {
		if err == nil {
			return
		}
		for _, f := range fronts {
			_ = f.listener.Close()
		}
	}()
	doors := []struct {
		scheme, address string
		prepare         func(root string) (func(context.Context, net.Listener) error, error)
	}{
		{"http", cfg.HTTPAddr, s.plainDoor},
		{"https", cfg.HTTPSAddr, s.tlsDoor},
		{"ssh", cfg.SSHAddr, s.sshDoor},
	}
	for _, door := range doors {
		if door.address == "" {
			continue
		}
		serve, err := door.prepare(cfg.Root)
		if err != nil {
			return fronts, err
		}
		listener, err := loopback.Listen(ctx, door.address)
		if err != nil {
			return fronts, fmt.Errorf("git over %s: %w", door.scheme, err)
		}
		fronts = append(fronts, front{door.scheme, listener, serve})
	}
	if len(fronts) == 0 {
		return nil, errors.New("no address to listen on: set HTTPAddr, HTTPSAddr or SSHAddr")
	}
	return fronts, nil
}

// serve runs all fronts until ctx is canceled or one of them fails, which stops all others.
func (s *server) serve(ctx context.Context, fronts []front) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	broken := make([]error, len(fronts))
	var serving sync.WaitGroup
	for i, f := range fronts {
		serving.Go(func() {
			defer stop()
			if err := f.serve(ctx, f.listener); err != nil {
				broken[i] = fmt.Errorf("serving git over %s: %w", f.scheme, err)
			}
		})
	}
	serving.Wait()
	s.busy.Wait()
	return errors.Join(broken...)
}

func (s *server) plainDoor(string) (func(context.Context, net.Listener) error, error) {
	return s.serveHTTP, nil
}

func (s *server) tlsDoor(root string) (func(context.Context, net.Listener) error, error) {
	certificate, err := leaf(root)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"}, // streams a push of unknown length
	}
	return func(ctx context.Context, listener net.Listener) error {
		return s.serveHTTP(ctx, tls.NewListener(listener, config))
	}, nil
}

func (s *server) serveHTTP(ctx context.Context, listener net.Listener) error {
	return loopback.Serve(ctx, listener, fault.Handler(s.repositories.root, fetches, s), s.log)
}
