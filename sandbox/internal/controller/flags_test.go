package controller

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestFlagsOfBinaries compares the flags with the flags in the help of the controllers. In a trusted sandbox, a missing
// flag would be passed to the controller as unknown.
func TestFlagsOfBinaries(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		testFlags(t, name)
	}
}

func TestNightlyFlagsOfOperator(t *testing.T) {
	t.Parallel()
	testFlags(t, "flux-operator")
}

func testFlags(t *testing.T, name string) {
	t.Helper()
	c, _ := Get(name)
	dir := os.Getenv("FLUX_SANDBOX_BIN")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "bin")
	}
	// A boolean flag has no type before its text.
	printed := regexp.MustCompile(`(?m)^ +(?:-[a-z], )?--([a-zA-Z-]+)( \S+)? {2,}`)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "controllers", c.Name), "--help")
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput() // pflag exits with an error after the help
	found := printed.FindAllStringSubmatch(string(out), -1)
	if len(found) < 10 {
		t.Fatalf("%s --help: %v\n%s", c.Name, err, out)
	}
	for _, m := range found {
		name, typed := m[1], m[2] != ""
		own := slices.ContainsFunc(c.Listens, func(l Listen) bool { return l.Flag == name }) ||
			slices.ContainsFunc(c.Stores, func(s Store) bool { return s.Flag == name })
		flag := FindFlag(name)
		if !own && (!flag.Known || flag.Boolean == typed) {
			t.Errorf("--%s of %s: known %t, boolean %t", name, c.Name, flag.Known, flag.Boolean)
		}
	}
}
