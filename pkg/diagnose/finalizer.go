package diagnose

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// deletionGrace is how long a deletion may take before its finalizers are
// reported: a controller needs a moment to run its cleanup.
const deletionGrace = 30 * time.Second

// finalizerOwner is what a finalizer waits for.
type finalizerOwner struct {
	// match is the finalizer, or with a leading "." the end of its domain.
	match string
	// owner removes the finalizer once waits is over.
	owner, waits string
	// skips is what does not happen when the finalizer is removed by hand.
	skips string
}

// finalizerOwners are the finalizers that are found on most clusters, the more
// specific first. Another one is attributed to its domain.
var finalizerOwners = []finalizerOwner{
	{"kubernetes.io/pvc-protection", "kube-controller-manager", "a Pod still uses the PersistentVolumeClaim", "the protection of the data that the Pod uses"},
	{"kubernetes.io/pv-protection", "kube-controller-manager", "a PersistentVolumeClaim is still bound to the PersistentVolume", "the protection of the bound volume"},
	{"external-provisioner.volume.kubernetes.io/finalizer", "the CSI external-provisioner", "the storage system has not deleted the volume", "the deletion of the volume in the storage system"},
	{"foregroundDeletion", "the garbage collector of kube-controller-manager", "objects that it owns are not deleted yet", "nothing: its dependents are deleted in the background"},
	{"orphan", "the garbage collector of kube-controller-manager", "the owner references of its dependents are not removed yet", "the release of its dependents, which are then deleted, too"},
	{"kubernetes", "the namespace controller of kube-controller-manager", "the Namespace still contains objects", "the deletion of what the Namespace contains"},
	{"service.kubernetes.io/load-balancer-cleanup", "the cloud controller manager", "the load balancer is not deleted yet", "the deletion of the load balancer at the cloud provider"},
	{"batch.kubernetes.io/job-tracking", "the Job controller of kube-controller-manager", "the Pod is not counted in the status of its Job yet", "the count of the Pod in its Job"},
	{"customresourcecleanup.apiextensions.k8s.io", "the API server", "custom resources of the CRD are not deleted yet", "the deletion of the custom resources"},
	{"finalizers.fluxcd.io", "the Flux controller of its kind", "the controller has not finished its cleanup", "the garbage collection of what the object has applied or stored"},
	{"resources-finalizer.argocd.argoproj.io", "the Argo CD application controller", "the resources of the Application are not deleted yet", "the deletion of the resources of the Application"},
	{"finalizer.acme.cert-manager.io", "cert-manager", "the ACME challenge is not cleaned up yet", "the cleanup of the ACME challenge, such as a DNS record"},
	{"acme.cert-manager.io/finalizer", "cert-manager", "the ACME challenge is not cleaned up yet", "the cleanup of the ACME challenge, such as a DNS record"},
	{"uninstall-helm-release", "the Helm operator of its kind", "the Helm release is not uninstalled yet", "the uninstallation of the Helm release"},
	{"helm.sh/finalizer", "Helm", "the release is not uninstalled yet", "the uninstallation of the Helm release"},
	{"ingress.k8s.aws/resources", "the AWS Load Balancer Controller", "the load balancer is not deleted yet", "the deletion of the load balancer in AWS"},
	{".crossplane.io", "Crossplane", "the external resource is not deleted yet", "the deletion of the external resource"},
	{".cluster.x-k8s.io", "Cluster API", "the machines of the cluster are not deleted yet", "the deletion of the machines"},
}

// ownerOfFinalizer returns who is expected to remove a finalizer.
func ownerOfFinalizer(finalizer string) finalizerOwner {
	domain, _, qualified := strings.Cut(finalizer, "/")
	for _, o := range finalizerOwners {
		if o.match == finalizer || strings.HasPrefix(o.match, ".") && qualified && strings.HasSuffix("."+domain, o.match) {
			return o
		}
	}
	owner := "the controller that added it"
	if qualified {
		owner = "a controller of " + domain
	}
	return finalizerOwner{finalizer, owner, "the controller has not finished its cleanup, or no longer runs", "the cleanup of that controller"}
}

// deletedAt returns when the deletion of an object was requested, false for one
// that is not being deleted.
func deletedAt(o controllers.Object) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, controllers.Path{"metadata.deletionTimestamp"}.String(o))
	return at, err == nil
}

// blockedDeletion returns what keeps an object from being deleted; false for
// one that is not being deleted, or that nothing keeps.
func blockedDeletion(t controllers.Target, o controllers.Object) (Finding, bool) {
	at, deleting := deletedAt(o)
	finalizers := kube.Finalizers(o)
	if !deleting || len(finalizers) == 0 {
		return Finding{}, false
	}
	f := Finding{Object: key(t), Code: "deleting", Since: at}
	f.Message = fmt.Sprintf("deletion was requested at %s and waits for finalizer %s", at.UTC().Format(time.RFC3339), strings.Join(finalizers, ", "))
	var skipped []string
	for _, finalizer := range finalizers {
		owner := ownerOfFinalizer(finalizer)
		f.Details = append(f.Details, fmt.Sprintf("%s is removed by %s: %s", finalizer, owner.owner, owner.waits))
		skipped = append(skipped, owner.skips)
	}
	f.Remedies = []string{
		"check that the owner of the finalizer runs, and its logs",
		fmt.Sprintf("as a last resort remove the finalizer, which skips %s: %s", strings.Join(skipped, "; "), removeFinalizers(t)),
	}
	return f, true
}

// removeFinalizers is the command that removes all finalizers of an object.
func removeFinalizers(t controllers.Target) string {
	return fmt.Sprintf(`kubectl%s patch %s %s --type=merge -p '{"metadata":{"finalizers":null}}'`, inNamespace(t.Namespace), resourceWord(t), t.Name)
}

// resourceWord names the resource of a target as kubectl takes it, with the
// version and group where these are known.
func resourceWord(t controllers.Target) string {
	word := strings.ToLower(t.Kind)
	if group, version, ok := strings.Cut(t.APIVersion, "/"); ok {
		return word + "." + version + "." + group
	}
	return word
}
