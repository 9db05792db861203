package script_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/test/support/testcluster"
)

// observe plays the controller of one object until the script ends: it answers
// every generation of it, and every request to reconcile it, with a Ready
// condition and, if given, more of a status in JSON: observe KIND NAME True|False REASON MESSAGE [STATUS]
func observe(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) < 5 {
		ts.Fatalf("usage: observe KIND NAME True|False REASON MESSAGE [STATUS]")
	}
	k, ok := controllers.FindKind(args[0])
	if !ok {
		ts.Fatalf("unknown kind %s", args[0])
	}
	more := map[string]any{}
	if len(args) > 5 {
		ts.Check(json.Unmarshal([]byte(args[5]), &more))
	}
	namespace, name := ts.Getenv("NS"), args[1]
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- cluster.Client.Follow(ctx, kube.Of(k), kube.Selection{Namespace: namespace, Name: name}, "", func(e kube.Event) (bool, error) {
			generation, _ := controllers.Path{"metadata.generation"}.Lookup(e.Object)
			condition, answered := controllers.FindCondition(e.Object, "Ready")
			token := controllers.Annotation(e.Object, controllers.RequestAnnotation)
			handled := controllers.Path{"status.lastHandledReconcileAt"}.String(e.Object)
			if e.Deleted || answered && condition.ObservedGeneration == number(generation) && token == handled {
				return false, nil
			}
			status := map[string]any{"conditions": []any{map[string]any{
				"type": "Ready", "status": args[2], "reason": args[3], "message": args[4],
				"lastTransitionTime": "2026-11-01T10:00:00Z", "observedGeneration": generation,
			}}}
			if args[2] == "True" {
				status["observedGeneration"] = generation
			}
			if token != "" {
				status["lastHandledReconcileAt"] = token
			}
			for key, value := range more {
				status[key] = value
			}
			return false, cluster.Client.PatchStatus(ctx, kube.Of(k), namespace, name, status)
		})
	}()
	ts.Defer(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			ts.Fatalf("observing %s %s: %v", k.Kind, name, err)
		}
	})
}

func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	default:
		return -1
	}
}

// sshhost starts an SSH server that presents its host key and rejects all clients, with
// its address in SSH_HOST: sshhost
func sshhost(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: sshhost")
	}
	// The same key each time, so that its fingerprint can be expected.
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	ts.Check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		return nil, errors.New("all clients are rejected")
	}}
	config.AddHostKey(signer)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the script is over
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				_, _, _, _ = ssh.NewServerConn(conn, config) // it ends when the client has seen the key
			})
		}
	})
	ts.Setenv("SSH_HOST", listener.Addr().String())
	ts.Defer(func() {
		ts.Check(listener.Close())
		serving.Wait()
	})
}

// keys writes keys and certificates that no repository should hold: ca.crt,
// client.crt with client.key, other.key, app.pem (RSA), id and id_locked
// (SSH, the second under the passphrase "open sesame"): keys
func makeKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: keys")
	}
	write := func(name string, block *pem.Block, err error) {
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(block), 0o600))
	}
	client, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, client.Public(), client)
	write("ca.crt", &pem.Block{Type: "CERTIFICATE", Bytes: der}, err)
	write("client.crt", &pem.Block{Type: "CERTIFICATE", Bytes: der}, nil)
	der, err = x509.MarshalPKCS8PrivateKey(client)
	write("client.key", &pem.Block{Type: "PRIVATE KEY", Bytes: der}, err)
	_, other, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	der, err = x509.MarshalPKCS8PrivateKey(other)
	write("other.key", &pem.Block{Type: "PRIVATE KEY", Bytes: der}, err)
	app, err := rsa.GenerateKey(rand.Reader, 2048)
	ts.Check(err)
	write("app.pem", &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(app)}, nil)
	block, err := ssh.MarshalPrivateKey(other, "")
	write("id", block, err)
	block, err = ssh.MarshalPrivateKeyWithPassphrase(other, "", []byte("open sesame"))
	write("id_locked", block, err)
}

// useOperator lets the cluster serve the kinds of flux-operator until the script ends: operator
func useOperator(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: operator")
	}
	ctx := context.Background()
	ts.Defer(func() { ts.Check(cluster.RemoveOperator(ctx)) })
	ts.Check(cluster.InstallOperator(ctx))
}

// outdate makes the cluster serve only older versions until the script ends:
// the ones before the shipped ones, or the oldest: outdate last|oldest
func outdate(ts *testscript.TestScript, cluster *testcluster.Cluster, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "last" && args[0] != "oldest" {
		ts.Fatalf("usage: outdate last|oldest")
	}
	ctx := context.Background()
	// What stored older versions cannot become current again.
	ts.Defer(func() { ts.Check(cluster.RemoveCRDs(ctx)) })
	ts.Check(cluster.ServeOlder(ctx, func(k controllers.Kind) string {
		switch {
		case len(k.Older) == 0:
			return ""
		case args[0] == "last":
			return k.Older[0]
		default:
			return k.Older[len(k.Older)-1]
		}
	}))
}
