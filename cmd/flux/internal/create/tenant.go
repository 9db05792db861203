package create

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
	"github.com/fluxkit/flux/cmd/flux/internal/create/creation"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube"
)

// tenantLabel is the label of tenant objects.
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
		Short: "Create or update the namespaces, service accounts and role bindings of a tenant",
		Long: `Create or update the namespaces of a tenant, with a ServiceAccount and a RoleBinding
in each. A Kustomization or HelmRelease that impersonates the ServiceAccount is limited
to the permissions of the ClusterRole in these namespaces.`,
		Example: `  # Create a tenant with two namespaces
  flux create tenant dev-team --with-namespace=frontend --with-namespace=backend --label=env=dev

  # Export a tenant with the permissions of a ClusterRole, to commit it to Git
  flux create tenant dev-team --with-namespace=apps --cluster-role=edit --export > dev-team.yaml

  # Deploy as the tenant
  flux create kustomization app -n apps --source=GitRepository/app --path=./deploy --prune --service-account=dev-team`,
		RunE: func(cmd *cobra.Command, args []string) error { return createTenant(a, cmd, common, o, args) },
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&o.namespaces, "with-namespace", nil, "namespaces of the tenant")
	fs.StringVar(&o.clusterRole, "cluster-role", "cluster-admin", "ClusterRole to bind to the ServiceAccounts of the tenant")
	fs.StringVar(&o.account, "with-service-account", "", "name of the ServiceAccounts (default: the name of the tenant)")
	fs.BoolVar(&o.skipNamespace, "skip-namespace", false, "do not create the namespaces")
	complete.Flag(cmd, "with-namespace", creation.CompleteReferences(a, []string{"Namespace"}))
	complete.Flag(cmd, "cluster-role", cobra.FixedCompletions([]string{"cluster-admin", "admin", "edit", "view"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func createTenant(a *app.App, cmd *cobra.Command, common *creation.Flags, o *tenantFlags, args []string) error {
	c := creation.New(a, cmd, common, args)
	if len(o.namespaces) == 0 {
		c.Check(hint.Errorf("set it with --with-namespace=…", "--with-namespace is required"))
	}
	for _, namespace := range o.namespaces {
		c.CheckFlag("with-namespace", syntax.Name(namespace))
	}
	if o.clusterRole == "" {
		c.Check(errors.New("--cluster-role is required"))
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
		a.UI.Success("tenant setup completed: %s", c.Name)
	}
	return nil
}

// tenant returns the objects of a tenant, grouped by namespace.
func tenant(c *creation.Creation, o *tenantFlags) []*unstructured.Unstructured {
	account := o.account
	if account == "" {
		account = c.Name
	}
	c.Labels[tenantLabel] = c.Name
	var objects []*unstructured.Unstructured
	add := func(apiVersion, kind, name, namespace string, more map[string]any) {
		metadata := map[string]any{"name": name, "labels": c.Labels}
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

// applyTenant applies one object of a tenant. It replaces a RoleBinding to
// another role, because roleRef is immutable.
func applyTenant(ctx context.Context, c *creation.Creation, o *unstructured.Unstructured) error {
	noun := strings.ToLower(o.GetKind()) + " " + o.GetName()
	if o.GetNamespace() != "" {
		noun += " in namespace " + o.GetNamespace()
	}
	done, err := c.Apply(ctx, noun, o)
	switch {
	case err != nil && c.DryRun != "" && apierrors.IsNotFound(err):
		c.App.UI.Warning("%s not checked: its namespace does not exist", noun)
		return nil
	case err != nil && o.GetKind() == "RoleBinding" && apierrors.IsInvalid(err) && done.Before != nil && c.DryRun == "":
		client, clientErr := c.App.Client()
		if clientErr != nil {
			return clientErr
		}
		c.App.UI.Action("replacing %s: roleRef is immutable", noun)
		if _, err := client.Delete(ctx, kube.ResourceFor(o.GroupVersionKind()), o.GetNamespace(), o.GetName()); err != nil {
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
