package part

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/fluxkit/flux/sandbox/internal/access"
	"github.com/fluxkit/flux/sandbox/internal/pki"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// serviceCIDR is the range of the cluster IPs, which are not reachable.
const serviceCIDR = "10.96.0.0/16"

func runAPIServer(ctx context.Context, folder state.Folder, config state.Config) error {
	dir := pki.Dir(folder.Path("pki"))
	flags := map[string]string{
		"bind-address":         "127.0.0.1",
		"advertise-address":    "127.0.0.1",
		"secure-port":          strconv.Itoa(config.Ports["apiserver"]),
		"tls-cert-file":        dir.Cert("apiserver"),
		"tls-private-key-file": dir.Key("apiserver"),
		"cert-dir":             folder.Path("pki"),

		"etcd-servers":  "https://" + config.Addr("etcd"),
		"etcd-cafile":   dir.CA(),
		"etcd-certfile": dir.Cert("apiserver-etcd"),
		"etcd-keyfile":  dir.Key("apiserver-etcd"),

		"kubelet-certificate-authority":   dir.CA(),
		"kubelet-client-certificate":      dir.Cert("apiserver-kubelet"),
		"kubelet-client-key":              dir.Key("apiserver-kubelet"),
		"kubelet-preferred-address-types": "InternalIP",

		"authorization-mode":               "RBAC",
		"anonymous-auth":                   "true", // health checks send no token
		"token-auth-file":                  access.TokenFile(folder),
		"service-account-issuer":           "https://kubernetes.default.svc.cluster.local",
		"service-account-key-file":         folder.PKI("service-account.pub"),
		"service-account-signing-key-file": dir.Key("service-account"),
		"service-cluster-ip-range":         serviceCIDR,

		// ServiceAccount would add a token volume to every pod, which is not mounted; TaintNodesByCondition
		// requires the node-lifecycle controller, which is disabled below.
		"disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
		"allow-privileged":          "true",
		"profiling":                 "false",
		"endpoint-reconciler-type":  "none",
		"watch-cache":               "true",
		"event-ttl":                 "2h",
		"shutdown-delay-duration":   "0s",
		"v":                         "1",
	}
	if config.Untrusted {
		file, err := writePolicies(folder)
		if err != nil {
			return err
		}
		flags["admission-control-config-file"] = file
		flags["feature-gates"] = "ManifestBasedAdmissionControlConfig=true"
	}
	if config.FeatureGates != "" {
		flags["feature-gates"] = strings.TrimPrefix(flags["feature-gates"]+","+config.FeatureGates, ",")
	}
	return execute(ctx, apiserver.NewAPIServerCommand(), flags)
}

// CheckFeatureGates returns an error for unknown feature gates and feature gates that cannot be set.
func CheckFeatureGates(text string) error {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	for _, gate := range strings.Split(text, ",") {
		name, _, _ := strings.Cut(gate, "=")
		if _, known := gates.GetAll()[featuregate.Feature(name)]; !known && text != "" {
			return fmt.Errorf("unknown feature gate %q", name)
		}
	}
	return gates.Set(text)
}

// policies contains static admission policies of the API server.
//
//go:embed policies.yaml
var policies []byte

// writePolicies writes the policies, and returns the configuration file that refers to their directory.
func writePolicies(folder state.Folder) (string, error) {
	file := folder.Path("admission.yaml")
	text := fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ValidatingAdmissionPolicyConfiguration, staticManifestsDir: %q}
`, folder.Path("policies"))
	return file, errors.Join(state.WriteFile(folder.Path("policies", "policies.yaml"), policies), state.WriteFile(file, []byte(text)))
}

// unneeded lists controllers for machines, disks and certificates, which a
// sandbox does not have.
var unneeded = []string{
	"node-lifecycle-controller", "taint-eviction-controller", "device-taint-eviction-controller",
	"persistentvolume-attach-detach-controller", "persistentvolume-expander-controller",
	"certificatesigningrequest-signing-controller", "certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller", "ttl-controller",
	"legacy-serviceaccount-token-cleaner-controller", "resourceclaim-controller",
	"volumeattributesclass-protection-controller", "horizontal-pod-autoscaler-controller",
}

func runControllerManager(ctx context.Context, folder state.Folder, config state.Config) error {
	dir := pki.Dir(folder.Path("pki"))
	kubeconfig := folder.PartKubeconfig("controller-manager")
	return execute(ctx, controllermanager.NewControllerManagerCommand(), map[string]string{
		"kubeconfig":                       kubeconfig,
		"authentication-kubeconfig":        kubeconfig,
		"authorization-kubeconfig":         kubeconfig,
		"bind-address":                     "127.0.0.1",
		"secure-port":                      strconv.Itoa(config.Ports["controller-manager"]),
		"tls-cert-file":                    dir.Cert("apiserver"),
		"tls-private-key-file":             dir.Key("apiserver"),
		"leader-elect":                     "false",
		"root-ca-file":                     dir.CA(),
		"service-account-private-key-file": dir.Key("service-account"),
		"use-service-account-credentials":  "true",
		"controllers":                      "*,-" + strings.Join(unneeded, ",-"),
		"kube-api-qps":                     "200",
		"kube-api-burst":                   "400",
		// Users wait for the deletion of namespaces, so check them often.
		"namespace-sync-period": "30s",
		"profiling":             "false",
	})
}

func runScheduler(ctx context.Context, folder state.Folder, config state.Config) error {
	dir := pki.Dir(folder.Path("pki"))
	kubeconfig := folder.PartKubeconfig("scheduler")
	path := folder.Path("kwok", "scheduler.yaml")
	if err := state.WriteFile(path, []byte(schedulerConfig(kubeconfig))); err != nil {
		return err
	}
	command := scheduler.NewSchedulerCommand(scheduler.WithPlugin(holdName, newHold))
	return execute(ctx, command, map[string]string{
		"config":                    path,
		"authentication-kubeconfig": kubeconfig,
		"authorization-kubeconfig":  kubeconfig,
		"bind-address":              "127.0.0.1",
		"secure-port":               strconv.Itoa(config.Ports["scheduler"]),
		"tls-cert-file":             dir.Cert("apiserver"),
		"tls-private-key-file":      dir.Key("apiserver"),
	})
}

// execute runs the command of a Kubernetes program with flags given by name.
func execute(ctx context.Context, command *cobra.Command, flags map[string]string) error {
	args := make([]string, 0, len(flags))
	for name, value := range flags {
		args = append(args, fmt.Sprintf("--%s=%s", name, value))
	}
	command.SetArgs(args)
	command.SilenceUsage, command.SilenceErrors = true, true
	if err := command.ExecuteContext(ctx); err != nil {
		return fmt.Errorf("running %s: %w", command.Name(), err)
	}
	return nil
}
