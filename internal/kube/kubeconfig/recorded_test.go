package kubeconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/internal/kube/kubeconfig"
)

// TestClock checks that only the cluster of a recording sets the clock.
func TestClock(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 10, 0, 0, 5, time.FixedZone("", 3600))
	present := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	c := api.NewConfig()
	c.CurrentContext = "recording"
	for name, cluster := range map[string]*api.Cluster{
		"recording": {Server: "https://127.0.0.1:1", Extensions: kubeconfig.Recorded(at)}, "other": {Server: "https://127.0.0.1:2"},
	} {
		c.Clusters[name], c.AuthInfos[name], c.Contexts[name] = cluster, &api.AuthInfo{}, &api.Context{Cluster: name, AuthInfo: name}
	}
	text, err := clientcmd.Write(*c)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		replace, with string
		args          []string
		want          time.Time
	}{
		"recording":       {want: at},
		"other context":   {args: []string{"--context=other"}, want: present},
		"other cluster":   {args: []string{"--cluster=other"}, want: present},
		"its cluster":     {args: []string{"--context=other", "--cluster=recording"}, want: at},
		"another server":  {args: []string{"--server=https://127.0.0.1:3"}, want: present},
		"no time":         {replace: "time:", with: "times:", want: present},
		"invalid time":    {replace: "2026-", with: "late-", want: present},
		"other extension": {replace: "flux-recording", with: "flux-other", want: present},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "kubeconfig")
			content := string(text)
			if c.replace != "" {
				content = strings.ReplaceAll(content, c.replace, c.with)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			f := kubeconfig.New(func(string) string { return "" })
			fs := pflag.NewFlagSet("flux", pflag.ContinueOnError)
			f.Add(fs)
			if err := fs.Parse(append(c.args, "--kubeconfig="+path)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.REST(); err != nil {
				t.Fatal(err)
			}
			if got := f.Clock(func() time.Time { return present })(); !got.Equal(c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
