package create

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/internal/cli/app"
	"github.com/fluxkit/flux/internal/cli/clierr"
	"github.com/fluxkit/flux/internal/cli/complete"
	"github.com/fluxkit/flux/internal/cli/create/creation"
	"github.com/fluxkit/flux/internal/input"
	"github.com/fluxkit/flux/internal/kube"
)

// tenantLabel marks what belongs to a tenant.
const tenantLabel = "toolkit.fluxcd.io/tenant"

type tenantFlags struct {
	namespaces    []string
	clusterRole   string
	account       string
	skipNamespace bool
}

func newCreateTenant(a *app.App, common *creation.Flags) *cobra.Command {
	o := &tenantFlags{}
	cmd := &cobra.Command{
		Use:   "tenant [name]",
		Short: "Create or change the namespaces, service accounts and role bindings of a tenant",
		Long: `Create or change the namespaces of a tenant, with a service account and a role
binding in each. A Kustomization or HelmRelease that names the service account
can touch what the role allows in these namespaces, and nothing else.`,
		Example: `  # A tenant with two namespaces
  flux create tenant dev-team --with-namespace=frontend --with-namespace=backend --label=env=dev

  # Bounded by a role, for a repository
  flux create tenant dev-team --with-namespace=apps --cluster-role=edit --export > dev-team.yaml

  # What the tenant then deploys is bounded by the service account
  flux create kustomization app -n apps --source=GitRepository/app --path=./deploy --prune --service-account=dev-team`,
		RunE: func(cmd *cobra.Command, args []string) error { return createTenant(a, cmd, common, o, args) },
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&o.namespaces, "with-namespace", nil, "the namespaces of the tenant")
	fs.StringVar(&o.clusterRole, "cluster-role", "cluster-admin", "the ClusterRole that says what the tenant may do in them")
	fs.StringVar(&o.account, "with-service-account", "", "the name of the service accounts; the tenant's unless given")
	fs.BoolVar(&o.skipNamespace, "skip-namespace", false, "leave the namespaces themselves alone: they exist already")
	complete.Flag(cmd, "with-namespace", creation.CompleteReferences(a, []string{"Namespace"}))
	complete.Flag(cmd, "cluster-role", cobra.FixedCompletions([]string{"cluster-admin", "admin", "edit", "view"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func createTenant(a *app.App, cmd *cobra.Command, common *creation.Flags, o *tenantFlags, args []string) error {
	c := creation.New(a, cmd, common, args)
	if len(o.namespaces) == 0 {
		c.Check(clierr.WithHint("name one with --with-namespace=…", "with-namespace is required"))
	}
	for _, namespace := range o.namespaces {
		c.CheckFlag("with-namespace", input.Name(namespace))
	}
	if o.clusterRole == "" {
		c.Check(errors.New("cluster-role is required"))
	}
	c.ObjectName("with-service-account", o.account)
	if err := c.Err(); err != nil {
		return err
	}
	objects := tenant(c, o)
	if c.Export {
		for _, object := range objects {
			if err := c.Print(object); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, cancel := a.WithTimeout(cmd.Context())
	defer cancel()
	for _, object := range objects {
		if err := applyTenant(ctx, c, object); err != nil {
			return err
		}
	}
	if c.DryRun == "" {
		a.UI.Success("tenant %s is set up", c.Name)
	}
	return nil
}

// tenant are the objects of a tenant, namespace by namespace.
func tenant(c *creation.Creation, o *tenantFlags) []*unstructured.Unstructured {
	account := o.account
	if account == "" {
		account = c.Name
	}
	c.Labelled[tenantLabel] = c.Name
	var objects []*unstructured.Unstructured
	add := func(apiVersion, kind, name, namespace string, more map[string]any) {
		metadata := map[string]any{"name": name, "labels": c.Labelled}
		creation.Put(metadata, "namespace", namespace)
		object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
		for key, value := range more {
			object[key] = value
		}
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	const rbac = "rbac.authorization.k8s.io"
	for _, namespace := range o.namespaces {
		if !o.skipNamespace {
			add("v1", "Namespace", namespace, "", nil)
		}
		add("v1", "ServiceAccount", account, namespace, nil)
		add(rbac+"/v1", "RoleBinding", c.Name+"-reconciler", namespace, map[string]any{
			"roleRef": map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": o.clusterRole},
			"subjects": []any{
				map[string]any{"apiGroup": rbac, "kind": "User", "name": "gotk:" + namespace + ":reconciler"},
				map[string]any{"kind": "ServiceAccount", "name": account, "namespace": namespace},
			},
		})
	}
	return objects
}

// applyTenant applies one object of a tenant. The role of a binding cannot be
// changed, so a binding to another role is made anew.
func applyTenant(ctx context.Context, c *creation.Creation, o *unstructured.Unstructured) error {
	noun := strings.ToLower(o.GetKind()) + " " + o.GetName()
	if o.GetNamespace() != "" {
		noun += " in namespace " + o.GetNamespace()
	}
	done, err := c.Apply(ctx, noun, o)
	switch {
	case err != nil && c.DryRun != "" && apierrors.IsNotFound(err):
		c.App.UI.Warning("%s cannot be checked before its namespace exists", noun)
		return nil
	case err != nil && o.GetKind() == "RoleBinding" && apierrors.IsInvalid(err) && done.Before != nil && c.DryRun == "":
		client, clientErr := c.App.Client()
		if clientErr != nil {
			return clientErr
		}
		c.App.UI.Action("replacing %s, since the role of a binding cannot be changed", noun)
		if err := client.Delete(ctx, kube.ResourceFor(o.GroupVersionKind()), o.GetNamespace(), o.GetName()); err != nil {
			return fmt.Errorf("replacing %s: %w", noun, err)
		}
		if done, err = c.Apply(ctx, noun, o); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return c.Show(done.After)
}
