// Package kubelet is the agent of the sandbox's node: it serves the logs and
// port-forwards of every pod to the API server, and runs the pods of the Flux
// controllers as processes. kwok simulates all other pods.
package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxkit/flux/sandbox/internal/process"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// Kubelet is the agent of the node.
type Kubelet struct {
	folder   state.Folder
	config   state.Config
	client   kubernetes.Interface
	log      *slog.Logger
	starter  *process.Starter
	ports    *state.PortSequence
	services *services
	pods     *pods
}

// Run runs the agent until ctx is canceled. It returns when every process that it
// started has exited.
func Run(ctx context.Context, folder state.Folder, config state.Config) error {
	k, err := newKubelet(ctx, folder, config)
	if err != nil {
		return err
	}
	if err := k.ensureNode(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	if err := k.watch(running); err != nil {
		return err
	}
	var group sync.WaitGroup
	var serving error
	group.Go(func() {
		defer stop()
		serving = k.serve(running)
	})
	group.Go(func() { k.pods.work(running) })
	group.Wait()
	k.services.close()
	return serving
}

func newKubelet(ctx context.Context, folder state.Folder, config state.Config) (*Kubelet, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", folder.PartKubeconfig("kubelet"))
	if err != nil {
		return nil, fmt.Errorf("reading the kubelet's kubeconfig: %w", err)
	}
	rest.QPS, rest.Burst = 200, 400
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("creating the kubelet's client: %w", err)
	}
	k := &Kubelet{
		folder: folder, config: config, client: client, ports: state.NewPortSequence(),
		log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		// Children are killed when the thread that started them ends, so it outlives ctx.
		starter: process.NewStarter(context.WithoutCancel(ctx)),
	}
	k.pods = newPods(k)
	k.services, err = newServices(folder, k.pods)
	return k, err
}
