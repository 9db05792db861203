package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/internal/lazy"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

// deletionStuck is the minimum age of a deletion for which removing the finalizers manually is suggested: the cleanup of cloud
// resources may take most of an hour.
const deletionStuck = time.Hour

// finalizerOwner describes the controller that removes a finalizer.
type finalizerOwner struct {
	// match is the finalizer, or a suffix of its domain with a leading ".".
	match string
	// owner removes the finalizer when the condition in waits is resolved.
	owner, waits string
	// skips is the cleanup that is skipped if a user removes the finalizer. It is "" for finalizers that must not be removed: they
	// protect objects in use, or belong to Kubernetes or Flux.
	skips string
}

// finalizerOwners lists common finalizers, more specific ones first. Other finalizers are attributed to their domain.
var finalizerOwners = []finalizerOwner{
	{"kubernetes.io/pvc-protection", "kube-controller-manager", "a Pod still uses the PersistentVolumeClaim", ""},
	{"kubernetes.io/pv-protection", "kube-controller-manager", "a PersistentVolumeClaim is still bound to the PersistentVolume", ""},
	{"external-provisioner.volume.kubernetes.io/finalizer", "the CSI external-provisioner", "the storage system has not deleted the volume", "the deletion of the volume in the storage system"},
	{"foregroundDeletion", "the garbage collector of kube-controller-manager", "objects that it owns are not deleted yet", ""},
	{"orphan", "the garbage collector of kube-controller-manager", "the owner references of its dependents are not removed yet", ""},
	{"service.kubernetes.io/load-balancer-cleanup", "the cloud controller manager", "the load balancer is not deleted yet", "the deletion of the load balancer at the cloud provider"},
	{"batch.kubernetes.io/job-tracking", "the Job controller of kube-controller-manager", "the Pod is not counted in the status of its Job yet", ""},
	{"customresourcecleanup.apiextensions.k8s.io", "the API server", "custom resources of the CRD are not deleted yet", ""},
	{"finalizers.fluxcd.io", "the Flux controller of its kind", "the controller has not finished its cleanup", ""},
	{"resources-finalizer.argocd.argoproj.io", "the Argo CD application controller", "the resources of the Application are not deleted yet", "the deletion of the resources of the Application"},
	{"finalizer.acme.cert-manager.io", "cert-manager", "the ACME challenge is not cleaned up yet", "the cleanup of the ACME challenge, such as a DNS record"},
	{"acme.cert-manager.io/finalizer", "cert-manager", "the ACME challenge is not cleaned up yet", "the cleanup of the ACME challenge, such as a DNS record"},
	{"uninstall-helm-release", "the Helm operator of its kind", "the Helm release is not uninstalled yet", "the uninstallation of the Helm release"},
	{"helm.sh/finalizer", "Helm", "the release is not uninstalled yet", "the uninstallation of the Helm release"},
	{"ingress.k8s.aws/resources", "the AWS Load Balancer Controller", "the load balancer is not deleted yet", "the deletion of the load balancer in AWS"},
	{".crossplane.io", "Crossplane", "the external resource is not deleted yet", "the deletion of the external resource"},
	{".cluster.x-k8s.io", "Cluster API", "the machines of the cluster are not deleted yet", "the deletion of the machines"},
}

// ownerOfFinalizer returns the controller that is expected to remove a finalizer.
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
	return finalizerOwner{finalizer, owner, "the controller has not finished its cleanup, or is no longer running", "the cleanup of that controller"}
}

// DeletedAt returns the time at which the deletion of an object was requested, and false if it was not requested.
func DeletedAt(o controllers.Object) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, controllers.Path{"metadata.deletionTimestamp"}.String(o))
	return at, err == nil
}

// deletionReasons lists the condition reasons that report a failed cleanup after a deletion.
var deletionReasons = []string{"UninstallFailed", "PruneFailed"}

// FailedDeletion returns the condition of a Flux object whose controller fails to clean up after its deletion was requested.
func FailedDeletion(k controllers.Kind, o controllers.Object) (controllers.Readiness, bool) {
	ready := Readiness(k, o)
	_, deleting := DeletedAt(o)
	return ready, deleting && ready.Status == "False" && slices.Contains(deletionReasons, ready.Reason)
}

// failedJob matches the name of a Job in Helm's message about a failed hook.
var failedJob = lazy.Regexp(`\bjob ([a-z0-9.-]+) failed: `)

// FailedHook returns the Job of the hook that fails the deletion of a release in this cluster.
func FailedHook(k controllers.Kind, o controllers.Object) (controllers.ID, bool) {
	failed, is := FailedDeletion(k, o)
	m := failedJob().FindStringSubmatch(failed.Message)
	if !is || m == nil || controllers.IsRemote(o) {
		return controllers.ID{}, false
	}
	s := Subject{Kind: k, Object: o}
	return controllers.ID{Group: batchv1.GroupName, Kind: "Job", Namespace: s.ReleaseNamespace(), Name: m[1]}, true
}

// NamespaceConditions returns the reasons that block the deletion of a Namespace, and the fixes.
func NamespaceConditions(o controllers.Object) (details, fixes []string) {
	for _, typ := range []string{"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure", "NamespaceContentRemaining", "NamespaceFinalizersRemaining"} {
		c, found := controllers.FindCondition(o, typ)
		if !found || c.Status != "True" {
			continue
		}
		details = append(details, failure.OneLine(failure.Join(c.Reason, c.Message)))
		if m := staleAPI().FindStringSubmatch(c.Message); typ == "NamespaceDeletionDiscoveryFailure" && m != nil {
			fixes = append(fixes, "fix the server of API "+m[1]+", which does not respond: kubectl get apiservices",
				hint.Command("or, if it is no longer installed, delete its registration: kubectl delete apiservice %s", apiService(m[1])))
		}
	}
	return details, fixes
}

// staleAPI matches the group and version of an API whose server does not respond.
var staleAPI = lazy.Regexp(`server APIs: ([a-z0-9.-]+/v[a-z0-9]+): `)

// apiService returns the name of the APIService of GROUP/VERSION.
func apiService(api string) string {
	group, version, _ := strings.Cut(api, "/")
	return version + "." + group
}

// CheckOwners returns the fixes for the finalizers of other projects, one for each owner.
func CheckOwners(finalizers []string) []string {
	var fixes []string
	for _, finalizer := range finalizers {
		fix := "check that " + ownerOfFinalizer(finalizer).owner + " is running, and check its logs"
		if !kube.OwnFinalizer(finalizer) && !slices.Contains(fixes, fix) {
			fixes = append(fixes, fix)
		}
	}
	return fixes
}

// Deletion returns the finding for an object of any kind that is being deleted. It suggests removing the finalizers only after
// deletionStuck and if none of them protects an object.
func Deletion(t controllers.ID, o controllers.Object, now time.Time) (Finding, bool) {
	at, deleting := DeletedAt(o)
	if !deleting {
		return Finding{}, false
	}
	finalizers := kube.Finalizers(o)
	f := Finding{Object: t, Code: "deleting", Since: at}
	f.Message = fmt.Sprintf("deletion was requested at %s", at.UTC().Format(time.RFC3339))
	if len(finalizers) == 0 { // the finalizer of a Namespace is in its spec
		f.Message += " and has not finished"
		f.Fixes = []string{"check its conditions and events: " + Kubectl(t, "describe")}
		return f, true
	}
	f.Message += " and waits for finalizer " + strings.Join(finalizers, ", ")
	var skipped []string
	for _, finalizer := range finalizers {
		owner := ownerOfFinalizer(finalizer)
		f.Details = append(f.Details, fmt.Sprintf("%s is removed by %s: %s", finalizer, owner.owner, owner.waits))
		if owner.skips != "" {
			skipped = append(skipped, owner.skips)
		}
	}
	f.Fixes = append(CheckOwners(finalizers), Kubectl(t, "describe"))
	if len(skipped) == len(finalizers) && now.Sub(at) >= deletionStuck {
		f.Fixes = append(f.Fixes, fmt.Sprintf("remove the finalizer manually only if no controller will remove it; this skips %s: %s",
			strings.Join(skipped, "; "), Kubectl(t, "patch", "--type=merge", `-p '{"metadata":{"finalizers":null}}'`)))
	}
	return f, true
}
