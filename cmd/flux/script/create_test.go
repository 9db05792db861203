package script_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	automationv1 "github.com/fluxcd/image-automation-controller/api/v1"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/root"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

func commandTree() *cobra.Command {
	return root.NewRoot(app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now), nil)
}

// contractFlag is a flag as the contract has it.
type contractFlag struct {
	Name, Short, Default string
	Inherited            bool   `json:"inherited_by_subcommands"`
	NoOptDefault         string `json:"no_opt_default"`
	Hidden               bool
}

// TestCreateAndTriggerHaveTheContract compares commands and flags with those of Flux 2.9.
func TestCreateAndTriggerHaveTheContract(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(testcluster.Root(), "test", "compat", "commands.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Command string
		Aliases []string
		Flags   []contractFlag
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, want := range all {
		words := strings.Fields(want.Command)
		if len(words) < 2 || words[1] != "create" && words[1] != "trigger" && words[1] != "build" {
			continue
		}
		checked++
		cmd, rest, err := commandTree().Find(words[1:])
		if err != nil || len(rest) > 0 {
			t.Errorf("there is no command %q", want.Command)
			continue
		}
		if diff := cmp.Diff(want.Aliases, cmd.Aliases); diff != "" && len(want.Aliases)+len(cmd.Aliases) > 0 {
			t.Errorf("aliases of %s (-want +got):\n%s", want.Command, diff)
		}
		for _, f := range want.Flags {
			set := cmd.LocalFlags()
			if f.Inherited {
				set = cmd.PersistentFlags()
			}
			got := set.Lookup(f.Name)
			if got == nil {
				t.Errorf("%s has no flag --%s", want.Command, f.Name)
				continue
			}
			if diff := cmp.Diff(f, contractFlag{got.Name, got.Shorthand, got.DefValue, f.Inherited, got.NoOptDefVal, got.Hidden}); diff != "" {
				t.Errorf("%s --%s (-want +got):\n%s", want.Command, f.Name, diff)
			}
		}
	}
	if checked < 31 {
		t.Errorf("only %d commands of build, create and trigger in the contract", checked)
	}
}

// TestEveryFlagIsInAScript fails for a flag that no script of its command gives.
func TestEveryFlagIsInAScript(t *testing.T) {
	t.Parallel()
	lines := scriptLines(t)
	var commands []*cobra.Command
	for _, verb := range []string{"build", "create", "trigger"} {
		cmd, _, err := commandTree().Find([]string{verb})
		if err != nil {
			t.Fatal(err)
		}
		commands = append(commands, leaves(cmd)...)
	}
	shared := map[string]bool{}
	for _, cmd := range commands {
		var mine []string
		for _, line := range lines {
			if strings.HasPrefix(line, "exits ") && strings.Contains(line, strings.TrimPrefix(cmd.CommandPath(), "flux ")+" ") {
				mine = append(mine, line)
			}
		}
		uses := func(f *pflag.Flag) bool {
			names := "--" + f.Name
			if f.Shorthand != "" {
				names += "|-" + f.Shorthand
			}
			return slices.ContainsFunc(mine, regexp.MustCompile(`\s(`+names+`)(=|\s|$)`).MatchString)
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !uses(f) {
				t.Errorf("no script gives --%s to %s", f.Name, cmd.CommandPath())
			}
		})
		for p := cmd.Parent(); p.HasParent(); p = p.Parent() {
			p.PersistentFlags().VisitAll(func(f *pflag.Flag) { shared[f.Name] = shared[f.Name] || uses(f) })
		}
	}
	for name, used := range shared {
		if !used {
			t.Errorf("no script gives --%s to any create command", name)
		}
	}
}

// typed are the structs of the API modules, which the specs have to fit.
func typed(kind string) any {
	switch kind {
	case "GitRepository":
		return &sourcev1.GitRepository{}
	case "OCIRepository":
		return &sourcev1.OCIRepository{}
	case "Bucket":
		return &sourcev1.Bucket{}
	case "HelmRepository":
		return &sourcev1.HelmRepository{}
	case "HelmChart":
		return &sourcev1.HelmChart{}
	case "Kustomization":
		return &kustomizev1.Kustomization{}
	case "HelmRelease":
		return &helmv2.HelmRelease{}
	case "Alert":
		return &notificationv1beta3.Alert{}
	case "Provider":
		return &notificationv1beta3.Provider{}
	case "Receiver":
		return &notificationv1.Receiver{}
	case "ImageRepository":
		return &imagev1.ImageRepository{}
	case "ImagePolicy":
		return &imagev1.ImagePolicy{}
	case "ImageUpdateAutomation":
		return &automationv1.ImageUpdateAutomation{}
	default:
		return nil
	}
}

// TestSpecsFitTheAPI decodes everything that scripts expect create to print
// into the typed structs, strictly and both ways: no field is unknown there,
// and none is lost.
func TestSpecsFitTheAPI(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "script", "create", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range archive.Files {
			if !bytes.HasPrefix(section.Data, []byte("---\napiVersion:")) {
				continue
			}
			objects, err := testcluster.Decode(section.Data)
			if err != nil {
				t.Fatalf("%s: %s: %v", file, section.Name, err)
			}
			for _, o := range objects {
				into := typed(o.GetKind())
				if into == nil {
					continue
				}
				seen[o.GetKind()]++
				fits(t, filepath.Base(file)+": "+section.Name, o.Object, into)
			}
		}
	}
	for _, k := range controllers.Kinds {
		if k.Has(controllers.Create) && seen[k.Kind] == 0 {
			t.Errorf("no script prints a %s", k.Kind)
		}
	}
}

func fits(t *testing.T, where string, object map[string]any, into any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	text, err = json.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	if text, err = json.Marshal(object["spec"]); err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain, back["spec"]); diff != "" {
		t.Errorf("%s: the spec is another one by way of the API module (-printed +typed):\n%s", where, diff)
	}
}
