package audit

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/kinds"
	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/audit"
	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/validate"
)

// ofCluster audits the Flux objects of the cluster. Kinds that the user cannot list are reported as not
// audited.
func ofCluster(ctx context.Context, a *app.App, cmd *cobra.Command, o *options) ([]*validate.Result, error) {
	namespace, err := a.Namespace(cmd)
	if err != nil {
		return nil, err
	}
	client, err := a.Client()
	if err != nil {
		return nil, err
	}
	if o.everywhere {
		namespace = ""
	}
	objects, refused, err := client.ListAll(ctx, kube.Selection{Namespace: namespace, Without: []string{"status"}}, apierrors.IsForbidden, nil)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 && len(refused) == 0 {
		if err := kinds.CheckInstalled(ctx, client, namespace); err != nil {
			return nil, err
		}
	}
	result := audit.Live(objects, namespace, o.exclusions)
	for _, kind := range slices.Sorted(maps.Keys(refused)) {
		k, _ := controllers.FindKind(kind)
		id := controllers.VersionedID{ID: controllers.ID{Group: k.Group, Kind: k.Kind}, Version: k.Version}
		result.Findings = append(result.Findings, validate.Finding{
			Severity: validate.Unknown, Rule: validate.RuleNotValidated, Object: id, Owner: id, Message: "no permission to list " + kube.Of(k).GroupResource().String(),
		})
	}
	return []*validate.Result{result}, nil
}
