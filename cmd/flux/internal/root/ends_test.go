package root

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/test/support/testlimit"
	"github.com/fluxkit/flux/test/support/tier"
)

// muteServer accepts connections and never completes a response.
type muteServer struct {
	listener net.Listener
	says     string
	once     sync.Once
	// asked is closed when the first request arrives.
	asked   chan struct{}
	ended   chan struct{}
	serving sync.WaitGroup
}

// startMute starts a server that responds to each request with a fixed text and
// then keeps the connection open.
func startMute(t *testing.T, says string) *muteServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &muteServer{listener: listener, says: says, asked: make(chan struct{}), ended: make(chan struct{})}
	s.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.serving.Go(func() { s.serve(conn) })
		}
	})
	return s
}

func (s *muteServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }() // the client has closed the connection
	go func() {                         // for a client that connects and sends no request
		<-s.ended
		_ = conn.SetDeadline(time.Now())
	}()
	if _, err := conn.Read(make([]byte, 64<<10)); err != nil {
		return
	}
	s.once.Do(func() { close(s.asked) })
	if _, err := io.WriteString(conn, s.says); err != nil {
		return
	}
	<-s.ended
}

func (s *muteServer) close() error {
	close(s.ended)
	err := s.listener.Close()
	s.serving.Wait()
	return err
}

// mute lists the incomplete responses of a mute server.
var mute = map[string]string{
	"nothing":      "",
	"only headers": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
	"half a list":  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n{\"items\":[{\"kind\":\"\r\n",
}

// endRow has the arguments of a command that waits for a mute server. ADDRESS
// stands for the server's host and port, DIR for a directory with a manifest.
type endRow struct {
	args string
	// local is the reason why the command sends no request.
	local string
	// fails is true for a local command that fails with these arguments.
	fails bool
}

// endRows has a row for each command path, or one for a verb and all its
// subcommands. A new command needs a row here.
var endRows = map[string]endRow{
	"bootstrap bitbucket-server": {args: "--hostname=ADDRESS --owner=o --repository=r --personal --token=t --path=p"},
	"bootstrap git":              {args: "--url=http://ADDRESS/r.git --allow-insecure-http --username=u --password=p --token-auth --path=p --silent"},
	"bootstrap gitea":            {args: "--hostname=ADDRESS --owner=o --repository=r --personal --token=t --path=p"},
	"bootstrap github":           {args: "--hostname=ADDRESS --owner=o --repository=r --personal --token=t --path=p"},
	"bootstrap gitlab":           {args: "--hostname=ADDRESS --owner=o --repository=r --personal --token=t --path=p"},
	"build artifact":             {args: "--path=DIR --output=DIR/a.tgz", local: "it packs a directory"},
	"build artifact-generator":   {args: "app"},
	"build helmrelease":          {args: "app"},
	"build kustomization":        {args: "app --path=DIR"},
	"check":                      {},
	"completion":                 {local: "it prints a script"},
	"create alert":               {args: "app --provider-ref=p --event-source=Kustomization/*"},
	"create alert-provider":      {args: "app --type=generic --address=http://example.com"},
	"create helmrelease":         {args: "app --source=HelmRepository/r --chart=c"},
	"create image policy":        {args: "app --image-ref=r --select-semver=*"},
	"create image repository":    {args: "app --image=example.com/i"},
	"create image update":        {args: "app --git-repo-ref=r --author-name=a --author-email=a@example.com --checkout-branch=main"},
	"create kustomization":       {args: "app --source=GitRepository/r --path=./p"},
	"create receiver":            {args: "app --type=generic --secret-ref=s --resource=GitRepository/r"},
	"create secret git":          {args: "app --url=https://example.com/r.git --username=u --password=p"},
	"create secret githubapp":    {args: "app --app-id=1 --app-installation-id=1 --app-private-key=DIR/key.pem"},
	"create secret helm":         {args: "app --username=u --password=p"},
	"create secret notation":     {args: "app --trust-policy-file=DIR/policy.json --ca-cert-file=DIR/ca.crt"},
	"create secret oci":          {args: "app --url=example.com --username=u --password=p"},
	"create secret proxy":        {args: "app --address=http://example.com:1"},
	"create secret receiver":     {args: "app --token=t --type=generic --hostname=example.com"},
	"create secret sops":         {args: "app --vault-token=t"},
	"create secret tls":          {args: "app --ca-crt-file=DIR/ca.crt"},
	"create source bucket":       {args: "app --bucket-name=b --endpoint=example.com --access-key=k --secret-key=s"},
	"create source chart":        {args: "app --source=HelmRepository/r --chart=c"},
	"create source git":          {args: "app --url=https://example.com/r.git --branch=main"},
	"create source helm":         {args: "app --url=https://example.com"},
	"create source oci":          {args: "app --url=oci://example.com/r --tag=1"},
	"create tenant":              {args: "app --with-namespace=apps"},
	"debug":                      {args: "app --show-status"},
	"delete":                     {args: "app --silent"},
	"deps":                       {},
	"diff artifact":              {args: "oci://ADDRESS/r:1 --path=DIR --insecure-registry"},
	"diff artifact-generator":    {args: "app"},
	"diff clusters":              {args: "one two --kubeconfig=DIR/kubeconfig"},
	"diff helmrelease":           {args: "app --path=DIR"},
	"diff kustomization":         {args: "app --path=DIR"},
	"docgen":                     {args: "--path=DIR", local: "it writes files"},
	"envsubst":                   {local: "it replaces text"},
	"events":                     {},
	"export":                     {args: "app"},
	"get":                        {},
	"history":                    {args: "app"},
	"install":                    {},
	"list artifacts":             {args: "oci://ADDRESS/r --insecure-registry"},
	"logs":                       {},
	"migrate":                    {args: "--yes"},
	"migrate owner":              {args: "app --yes"},
	"orphans":                    {},
	"plugin list":                {local: "it lists files"},
	"plugin uninstall":           {args: "app", local: "it removes a file", fails: true},
	"plugin install":             {args: "app"},
	"plugin search":              {args: "app"},
	"options":                    {local: "it lists flags"},
	"plugin update":              {args: "", local: "no plugin is installed"},
	"pull artifact":              {args: "oci://ADDRESS/r:1 --output=DIR/out --insecure-registry"},
	"pull":                       {args: "app --list"},
	"push artifact":              {args: "oci://ADDRESS/r:1 --path=DIR --source=s --revision=main@sha1:1 --insecure-registry"},
	"reconcile":                  {args: "app"},
	"audit":                      {args: "--cluster"},
	"bisect":                     {args: "--good=none", local: "it reads the clone", fails: true},
	"record":                     {args: "--output=DIR/recording.gz"},
	"rehearse":                   {args: "--from-cluster --from=2.9"},
	"replay":                     {args: "DIR/none.gz", local: "it reads the file", fails: true},
	"resume":                     {args: "app"},
	"rollback":                   {args: "app --yes"},
	"sandbox":                    {local: "it is a separate program", fails: true},
	"sandbox pull":               {args: "--version=1.0.0 --releases=http://ADDRESS"},
	"stats":                      {},
	"status":                     {args: "ks app"},
	"suspend":                    {args: "app"},
	"tag artifact":               {args: "oci://ADDRESS/r:1 --tag=2 --insecure-registry"},
	"test":                       {args: "--path=none", local: "it reads the clone", fails: true},
	"test vendor":                {args: "--path=none", local: "it reads the clone", fails: true},
	"trace":                      {args: "deployment app"},
	"tree":                       {args: "app"},
	"trigger receiver":           {args: "app"},
	"uninstall":                  {args: "--silent"},
	"validate":                   {args: "--path=none", local: "it reads the clone", fails: true},
	"version":                    {},
	"wait":                       {args: "app"},
	"ui":                         {args: "--once"},
	"why":                        {args: "ks app"},
}

// watches lists commands that run until they are interrupted: --timeout bounds
// only their first response.
var watches = []string{"get kustomizations --watch", "get all --watch", "events --watch", "events --for ks/app --watch", "logs --follow"}

// endCase is a command line and the files that its arguments name.
type endCase struct {
	path  string
	row   endRow
	files map[string]string
}

// endCases returns a case for each command of the command tree.
func endCases(t *testing.T) []endCase {
	t.Helper()
	a := app.New(strings.NewReader(""), io.Discard, io.Discard, func(string) string { return "" }, time.Now)
	var cases []endCase
	used, files := map[string]bool{}, endFiles(t)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.HasSubCommands() {
			verb := strings.TrimPrefix(cmd.CommandPath(), "flux ")
			switch row, own := endRows[verb]; {
			case cmd.DisableFlagParsing:
				// The verb itself runs another program.
				used[verb] = true
				cases = append(cases, endCase{verb, endRows[verb], files})
			case own && cmd.ValidArgsFunction != nil && (row.local != "" || verb == "migrate"):
				// The verb itself has another task than its subcommands.
				used[verb] = true
				cases = append(cases, endCase{verb, row, files})
			case cmd.HasParent() && cmd.ValidArgsFunction != nil:
				// The verb itself takes KIND/NAME.
				object := "ks/app"
				if verb == "trigger" {
					object = "receiver/app"
				}
				cases = append(cases, endCase{verb, endRow{args: object + strings.TrimPrefix(endRows[verb].args, "app")}, files})
			}
			for _, child := range cmd.Commands() {
				walk(child)
			}
			return
		}
		if isTopic(cmd) {
			return // prints text only
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "flux ")
		first, _, _ := strings.Cut(path, " ")
		for _, words := range []string{path, path[:strings.LastIndex(path, " ")+1], first} {
			words = strings.TrimSpace(words)
			if row, ok := endRows[words]; ok {
				used[words] = true
				cases = append(cases, endCase{path, row, files})
				return
			}
		}
		t.Errorf("%s has no row in endRows", path)
	}
	walk(NewRoot(a, nil))
	for words := range endRows {
		if !used[words] {
			t.Errorf("no command has the path %q of endRows", words)
		}
	}
	for _, line := range watches {
		cases = append(cases, endCase{path: line, files: files})
	}
	return cases
}

// ending is the result of a command line.
type ending struct {
	code   int
	asked  bool
	output string
	err    error
	took   time.Duration
}

// prepare writes the files, and returns the arguments and the environment.
func (c endCase) prepare(dir, address string, timeout time.Duration) (args []string, env map[string]string, err error) {
	for name, text := range c.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, nil, err
		}
	}
	args = strings.Fields(c.path)
	for _, arg := range strings.Fields(c.row.args) {
		args = append(args, strings.NewReplacer("ADDRESS", address, "DIR", dir).Replace(arg))
	}
	return append(args, "--server=http://"+address, "--timeout="+timeout.String()), map[string]string{
		"HOME": dir, "GITHUB_TOKEN": "t", "GITLAB_TOKEN": "t", "GITEA_TOKEN": "t", "BITBUCKET_TOKEN": "t",
		"FLUXCD_PLUGINS": dir + "/plugins", "FLUXCD_PLUGIN_CATALOG": "http://" + address,
	}, nil
}

// run runs a command line against a mute server. If canceled is true it cancels
// the context, as a signal does, when the first request arrives.
func (c endCase) run(t *testing.T, says string, timeout time.Duration, canceled bool) ending {
	t.Helper()
	server := startMute(t, says)
	address := server.listener.Addr().String()
	dir := t.TempDir()
	args, variables, err := c.prepare(dir, address, timeout)
	if err != nil {
		return ending{err: err}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var out lockedBuffer
	a := app.New(strings.NewReader(""), &out, &out, func(name string) string { return variables[name] }, time.Now)
	code := make(chan int, 1)
	start := time.Now()
	go func() { code <- Run(ctx, a, args) }()
	if canceled {
		select {
		case <-server.asked:
			start = time.Now()
			cancel(context.Canceled)
		case early := <-code:
			code <- early
		case <-time.After(testlimit.Wait):
		}
	}
	e := ending{}
	select {
	case e.code = <-code:
	case <-time.After(testlimit.Wait):
		e.err = errors.New("the command hangs")
	}
	e.took, e.output = time.Since(start), out.String()
	select {
	case <-server.asked:
		e.asked = true
	default:
	}
	if e.err == nil {
		e.err = server.close()
	}
	return e
}

// endFiles returns the files that the rows name.
func endFiles(t *testing.T) map[string]string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"kustomization.yaml": "resources: [a.yaml]\n",
		"key.pem":            string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"ca.crt":             string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		"kubeconfig":         "apiVersion: v1\nkind: Config\ncontexts: [{name: one, context: {}}, {name: two, context: {}}]\n",
		"policy.json": `{"version": "1.0", "trustPolicies": [{"name": "all", "registryScopes": ["*"], "signatureVerification": {"level": "strict"},
 "trustStores": ["ca:app"], "trustedIdentities": ["*"]}]}`,
	}
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// TestEveryCommandEnds checks that every command fails with a timeout message if
// a server does not respond. It asserts no durations: the message shows that
// --timeout has ended the command.
func TestEveryCommandEnds(t *testing.T) {
	t.Parallel()
	const timeout = 500 * time.Millisecond
	forEnds(t, func(c endCase, how, says string) string {
		e := c.run(t, says, timeout, false)
		if c.row.local == "" && !e.asked && e.err == nil { // on a busy machine the timeout may expire before the first request
			e = c.run(t, says, 40*timeout, false)
		}
		switch {
		case e.err != nil:
			return fmt.Sprintf("%v: %s", e.err, e.output)
		case c.row.local != "" && (e.asked || e.code != clierr.ExitSuccess && !c.row.fails):
			return fmt.Sprintf("local command: exit code %d, sent a request: %t\n%s", e.code, e.asked, e.output)
		case c.row.local != "":
			return ""
		case !e.asked:
			return "no request\n" + e.output
		case e.code == clierr.ExitSuccess || e.code == clierr.ExitInterrupted:
			return fmt.Sprintf("exit code %d\n%s", e.code, e.output)
		case !strings.Contains(e.output, "timed out after"):
			return "no timeout message\n" + e.output
		}
		if e.took > timeout+time.Second {
			t.Logf("%s, %s: %s", c.path, how, e.took.Round(time.Millisecond))
		}
		return ""
	})
}

// TestEveryCommandStops interrupts every command while it waits for a response.
func TestEveryCommandStops(t *testing.T) {
	t.Parallel()
	forEnds(t, func(c endCase, how, says string) string {
		if c.row.local != "" {
			return ""
		}
		e := c.run(t, says, 10*testlimit.Wait, true)
		switch {
		case e.err != nil:
			return fmt.Sprintf("%v: %s", e.err, e.output)
		case !e.asked || e.code != clierr.ExitInterrupted:
			return fmt.Sprintf("exit code %d, sent a request: %t\n%s", e.code, e.asked, e.output)
		}
		if e.took > time.Second {
			t.Logf("%s, %s: %s", c.path, how, e.took.Round(time.Millisecond))
		}
		return ""
	})
}

// forEnds checks commands against the mute servers, 16 at a time because they
// mostly wait.
func forEnds(t *testing.T, check func(c endCase, how, says string) string) {
	t.Helper()
	slots := make(chan struct{}, 16)
	var wg sync.WaitGroup
	seen := map[string]bool{}
	for _, c := range endCases(t) {
		verb, _, _ := strings.Cut(c.path, " ")
		for how, says := range mute {
			// Only the first command of a verb runs against every response,
			// because the commands of its kinds share their code. make nightly
			// runs all combinations.
			if how != "nothing" && seen[verb] && !tier.Nightly() {
				continue
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if problem := check(c, how, says); problem != "" {
					t.Errorf("%s, response %s: %s", c.path, how, problem)
				}
			})
		}
		seen[verb] = true
	}
	wg.Wait()
}
