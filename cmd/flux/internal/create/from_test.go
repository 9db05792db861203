package create

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
)

// flagValues are valid values of flags, by kind and flag or by flag.
var flagValues = map[string][]string{
	"source": {"GitRepository/other"}, "HelmRelease/source": {"HelmRepository/other"}, "HelmChart/source": {"HelmRepository/other"},
	"depends-on": {"apps/other"}, "health-check": {"Deployment/other.apps"}, "health-check-timeout": {"7m"}, "decryption-provider": {"sops"},
	"retry-interval": {"7m"}, "chart-interval": {"7m"}, "scan-timeout": {"7m"}, "policy-change-delay": {"7m"}, "interval": {"7m"}, "fetch-timeout": {"7m"},
	"chart-ref": {"OCIRepository/other"}, "chart-version": {"7.x"}, "reconcile-strategy": {"Revision"}, "values": {"testdata/values.yaml"},
	"values-from": {"Secret/other"}, "crds": {"Skip"}, "image": {"example.com/other"}, "select-semver": {"7.x"}, "select-alpha": {"desc"}, "select-numeric": {"desc"},
	"filter-regex": {"^(?P<x>.)"}, "filter-extract": {"$x", "--filter-regex=^(?P<x>.)"}, "reflect-digest": {"Always"},
	"event-source": {"Kustomization/other"}, "event-severity": {"error"}, "resource": {"GitRepository/other"}, "Provider/type": {"slack"}, "Receiver/type": {"github"},
	"url": {"https://example.com/other"}, "OCIRepository/url": {"oci://example.com/other"}, "oci-provider": {"aws", "--url=oci://example.com/other"},
	"tag-semver": {"7.x"}, "provider": {"aws"}, "layer-selector": {"application/x:copy"}, "verify-provider": {"cosign"},
	"digest": {"sha256:" + strings.Repeat("7", 64)}, "endpoint": {"other.example.com"}, "git-repo-path": {"./other"},
}

// withoutField lists flags that do not set a field of the spec.
var withoutField = []string{
	"validation", "silent", "yes", "export", "label", "dry-run", "output", "help", "ssh-key-algorithm", "ssh-rsa-bits", "ssh-ecdsa-curve",
}

// TestFieldsOfFlags sets each flag of each kind and checks that the spec changes in the fields that
// the builder names, and in no other.
func TestFieldsOfFlags(t *testing.T) {
	t.Parallel()
	for i, b := range builders() {
		t.Run(b.Kind, func(t *testing.T) {
			t.Parallel()
			base := specWith(t, i)
			cmd, _ := commandOf(b)
			cmd.InheritedFlags()
			cmd.Flags().VisitAll(func(flag *pflag.Flag) {
				if slices.Contains(withoutField, flag.Name) || slices.Contains(b.SecretFlags, flag.Name) {
					return
				}
				value := "other"
				if flag.Value.Type() == "bool" {
					value = "true"
				}
				args := []string{value}
				for _, key := range []string{b.Kind + "/" + flag.Name, flag.Name} {
					if known, ok := flagValues[key]; ok {
						args = known
						break
					}
				}
				args = append([]string{"--" + flag.Name + "=" + args[0]}, args[1:]...)
				checkFields(t, args, b.FieldsOf(flag.Name), changed("", base, specWith(t, i, args...)))
			})
		})
	}
}

// checkFields checks that each changed field is one of the fields of a flag, or in one.
func checkFields(t *testing.T, args, fields, changed []string) {
	t.Helper()
	if noFields := len(fields) == 0 || args[0] == "--fetch-timeout=7m" || args[0] == "--interval=7m"; len(changed) == 0 && !noFields {
		t.Errorf("%q changes nothing", args)
	}
	for _, path := range changed {
		if !slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(path+".", field+".") }) {
			t.Errorf("%q changes %s, which is not in %q", args, path, fields)
		}
	}
}

// commandOf returns the command of a builder with its flags.
func commandOf(b creation.Builder) (*cobra.Command, *creation.Flags) {
	o := &creation.Flags{}
	root, cmd := &cobra.Command{Use: "create"}, &cobra.Command{Use: "kind"}
	o.Add(root.PersistentFlags())
	root.PersistentFlags().Duration("fetch-timeout", 0, "")
	root.AddCommand(cmd)
	b.AddFlags(nil, cmd)
	return cmd, o
}

// specWith returns the spec that a builder makes of flags.
func specWith(t *testing.T, i int, args ...string) map[string]any {
	t.Helper()
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	b := builders()[i]
	cmd, o := commandOf(b)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	c := creation.New(a, cmd, o, []string{"app"})
	c.Partial = true
	return b.Build(c)
}

// changed returns the fields in which two specs differ.
func changed(path string, a, b any) []string {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	if !isMap && !areMaps {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []string{path}
	}
	var all []string
	for _, m := range []map[string]any{x, y} {
		for key := range m {
			all = append(all, changed(strings.TrimPrefix(path+"."+key, "."), x[key], y[key])...)
		}
	}
	return all
}
