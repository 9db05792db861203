package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

func newCreateTenant(a *app, common *createFlags) *cobra.Command {
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
		RunE: func(cmd *cobra.Command, args []string) error { return a.createTenant(cmd, common, o, args) },
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&o.namespaces, "with-namespace", nil, "the namespaces of the tenant")
	fs.StringVar(&o.clusterRole, "cluster-role", "cluster-admin", "the ClusterRole that says what the tenant may do in them")
	fs.StringVar(&o.account, "with-service-account", "", "the name of the service accounts; the tenant's unless given")
	fs.BoolVar(&o.skipNamespace, "skip-namespace", false, "leave the namespaces themselves alone: they exist already")
	completeFlag(cmd, "with-namespace", a.completeReferences([]string{"Namespace"}))
	completeFlag(cmd, "cluster-role", cobra.FixedCompletions([]string{"cluster-admin", "admin", "edit", "view"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) createTenant(cmd *cobra.Command, common *createFlags, o *tenantFlags, args []string) error {
	c := a.newCreation(cmd, common, args)
	if len(o.namespaces) == 0 {
		c.wrong(hinted("name one with --with-namespace=…", "with-namespace is required"))
	}
	for _, namespace := range o.namespaces {
		c.flagged("with-namespace", input.Name(namespace))
	}
	if o.clusterRole == "" {
		c.wrong(errors.New("cluster-role is required"))
	}
	c.objectName("with-service-account", o.account)
	if err := c.verdict(); err != nil {
		return err
	}
	objects := c.tenant(o)
	if c.export {
		for _, object := range objects {
			if err := c.print(object); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, cancel := a.bounded(cmd.Context())
	defer cancel()
	for _, object := range objects {
		if err := c.applyTenant(ctx, object); err != nil {
			return err
		}
	}
	if c.dryRun == "" {
		a.ui.Success("tenant %s is set up", c.name)
	}
	return nil
}

// tenant are the objects of a tenant, namespace by namespace.
func (c *creation) tenant(o *tenantFlags) []*unstructured.Unstructured {
	account := o.account
	if account == "" {
		account = c.name
	}
	c.labelled[tenantLabel] = c.name
	var objects []*unstructured.Unstructured
	add := func(apiVersion, kind, name, namespace string, more map[string]any) {
		metadata := map[string]any{"name": name, "labels": c.labelled}
		put(metadata, "namespace", namespace)
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
		add(rbac+"/v1", "RoleBinding", c.name+"-reconciler", namespace, map[string]any{
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
func (c *creation) applyTenant(ctx context.Context, o *unstructured.Unstructured) error {
	noun := strings.ToLower(o.GetKind()) + " " + o.GetName()
	if o.GetNamespace() != "" {
		noun += " in namespace " + o.GetNamespace()
	}
	done, err := c.apply(ctx, noun, o)
	switch {
	case err != nil && c.dryRun != "" && apierrors.IsNotFound(err):
		c.app.ui.Warning("%s cannot be checked before its namespace exists", noun)
		return nil
	case err != nil && o.GetKind() == "RoleBinding" && apierrors.IsInvalid(err) && done.Before != nil && c.dryRun == "":
		client, clientErr := c.app.cluster()
		if clientErr != nil {
			return clientErr
		}
		c.app.ui.Action("replacing %s, since the role of a binding cannot be changed", noun)
		if err := client.Delete(ctx, kube.Guess(o.GroupVersionKind()), o.GetNamespace(), o.GetName()); err != nil {
			return fmt.Errorf("replacing %s: %w", noun, err)
		}
		if done, err = c.apply(ctx, noun, o); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return c.show(done.After)
}
