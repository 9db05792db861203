package script_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/test/support/testcluster"
	"github.com/fluxkit/flux/test/support/testrelease"
)

// releasesKey is the key of a script's releases of Flux.
type releasesKey struct{}

type releasesHolder struct{ *testrelease.Server }

// useReleases serves releases of Flux on loopback until the script ends:
//
//	releases archive FROM FILE      writes the archive of a release to FILE, from the rendered manifests FROM
//	releases put VERSION NAME FILE  adds FILE to a release
//	releases requests FILE          writes the requests since the last time to FILE
func useReleases(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: releases archive|put|requests ARG…")
	}
	h := ts.Value(releasesKey{}).(*releasesHolder)
	if h.Server == nil {
		h.start(ts)
	}
	switch {
	case args[0] == "archive" && len(args) == 3:
		objects, err := testcluster.Decode([]byte(ts.ReadFile(args[1])))
		ts.Check(err)
		archive, err := testrelease.Archive(objects)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), archive, 0o600))
	case args[0] == "put" && len(args) == 4:
		h.Put(args[1], args[2], []byte(ts.ReadFile(args[3])))
	case args[0] == "requests" && len(args) == 2:
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(append(h.Requests(), ""), "\n")), 0o600))
	default:
		ts.Fatalf("unknown command releases %s", strings.Join(args, " "))
	}
}

func (h *releasesHolder) start(ts *testscript.TestScript) {
	server, err := testrelease.Start(filepath.Join(ts.MkAbs("."), "releases.crt"))
	ts.Check(err)
	h.Server = server
	ts.Defer(server.Close)
	b := ts.Value(backgroundKey{}).(*background)
	for name, value := range server.Environment() {
		ts.Setenv(name, value)
		b.variables = append(b.variables, name)
	}
}
