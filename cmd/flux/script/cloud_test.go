package script_test

import (
	"os"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/test/support/testcloud"
	"github.com/fluxkit/flux/test/support/testlimit"
)

// cloudKey is the key of a script's cloud.
type cloudKey struct{}

type cloudHolder struct {
	*testcloud.Cloud
	// names are the variables of the last identity.
	names []string
}

// useCloud runs AWS, Azure and Google Cloud until the script ends:
//
//	cloud as IDENTITY        sets the environment
//	cloud fault [FAULT]      changes the behavior
//	cloud requests FILE      writes the requests since the last time to FILE, each once
//	cloud asked              waits for a request for credentials since the last cloud as or cloud fault
//	cloud masked [FILE…]     fails if a credential is in stdout, stderr or a file
func useCloud(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: cloud as|fault|requests|asked|masked [ARG…]")
	}
	h := ts.Value(cloudKey{}).(*cloudHolder)
	if h.Cloud == nil {
		cloud, err := testcloud.Start(ts.MkAbs("."))
		ts.Check(err)
		h.Cloud = cloud
		ts.Defer(cloud.Close)
	}
	if args[0] == "as" || args[0] == "fault" {
		select {
		case <-h.Asked(): // of an earlier command
		default:
		}
	}
	switch {
	case args[0] == "as" && len(args) == 2:
		h.as(ts, args[1])
	case args[0] == "fault" && len(args) <= 2:
		h.Set(testcloud.Fault(strings.Join(args[1:], "")))
	case args[0] == "requests" && len(args) == 2:
		var lines []string
		last := ""
		for _, request := range h.Requests() {
			if request != last { // clients repeat some
				lines = append(lines, request)
			}
			last = request
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Join(append(lines, ""), "\n")), 0o600))
	case args[0] == "asked":
		select {
		case <-h.Asked():
		case <-time.After(testlimit.Wait):
			ts.Fatalf("no request for credentials")
		}
	case args[0] == "masked":
		for _, file := range append([]string{"stdout", "stderr"}, args[1:]...) {
			for _, secret := range h.Secrets() {
				if strings.Contains(ts.ReadFile(file), secret) {
					ts.Fatalf("%s contains the credential %s", file, secret)
				}
			}
		}
	default:
		ts.Fatalf("unknown command cloud %s", strings.Join(args, " "))
	}
}

// as sets the environment of an identity, also for commands in the background.
func (h *cloudHolder) as(ts *testscript.TestScript, identity string) {
	env, err := h.Environment(identity)
	ts.Check(err)
	for _, name := range h.names {
		ts.Setenv(name, "")
	}
	h.names = nil
	b := ts.Value(backgroundKey{}).(*background)
	for name, value := range env {
		if name == "PATH" { // the program of the identity comes first
			value += string(os.PathListSeparator) + ts.Getenv("PATH")
		} else {
			h.names = append(h.names, name)
		}
		ts.Setenv(name, value)
		b.variables = append(b.variables, name)
	}
}
