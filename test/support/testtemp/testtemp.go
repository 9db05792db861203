// Package testtemp runs the tests of a package in a separate temporary directory.
package testtemp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// M runs the tests of a package in a separate temporary directory. The tests fail if they, or the
// programs that they start, leave files in it.
type M struct {
	Tests interface{ Run() int }
}

// Run implements testscript.TestingM.
func (m M) Run() int {
	code, err := m.run()
	if err == nil {
		return code
	}
	fmt.Fprintln(os.Stderr, "FAIL:", err)
	return max(code, 1)
}

func (m M) run() (code int, err error) {
	before, set := os.LookupEnv("TMPDIR")
	folder, err := os.MkdirTemp("", "flux-tests-") // short: sockets are created in it
	if err != nil {
		return 0, err
	}
	if err := os.Setenv("TMPDIR", folder); err != nil {
		return 0, errors.Join(err, os.Remove(folder))
	}
	code = m.Tests.Run()
	err = restore(before, set)
	return code, errors.Join(err, empty(folder), os.RemoveAll(folder))
}

func restore(before string, set bool) error {
	if set {
		return os.Setenv("TMPDIR", before)
	}
	return os.Unsetenv("TMPDIR")
}

// empty returns an error that lists the remaining files in the directory.
func empty(folder string) error {
	// testscript leaves its directory if -run selects some of the scripts.
	scripts, err := filepath.Glob(filepath.Join(folder, "go-test-script*"))
	if err != nil {
		return err
	}
	for _, name := range scripts {
		_ = os.Remove(name) // fails if a script has left files
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) == 0 {
		return err
	}
	return fmt.Errorf("the tests left %v in the temporary directory", left)
}
