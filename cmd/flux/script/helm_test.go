package script_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fluxkit/flux/internal/helm"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// helmed stores revisions of releases like Helm, in the script's namespace:
// helmed FILE…
func helmed(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: helmed FILE…")
	}
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		var r helm.Release
		ts.Check(json.Unmarshal([]byte(text), &r))
		var packed bytes.Buffer
		zipped := gzip.NewWriter(&packed)
		_, err := zipped.Write([]byte(text))
		ts.Check(err)
		ts.Check(zipped.Close())
		manifest := fmt.Sprintf(`apiVersion: v1
kind: Secret
type: helm.sh/release.v1
metadata:
  name: sh.helm.release.v1.%[1]s.v%[2]d
  labels: {owner: helm, name: %[1]s, status: %[3]s, version: "%[2]d"}
stringData: {release: %[4]s}
`, r.Name, r.Version, r.Info.Status, base64.StdEncoding.EncodeToString(packed.Bytes()))
		ts.Check(cluster.Seed(context.Background(), []byte(manifest), ts.Getenv("NS")))
	}
}
