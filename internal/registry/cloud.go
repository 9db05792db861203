package registry

import (
	"errors"
	"fmt"

	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/hint"
)

// provider holds the hints for a failed login with a cloud provider.
type provider struct {
	// registries describes the hosts of the provider's registries.
	registries string
	// identity is the hint for a missing identity.
	identity string
	// exchange is the permission to exchange the identity for registry credentials.
	exchange string
	// repository describes the permissions for a repository.
	repository string
}

var providers = map[string]provider{
	cloud.AWS: {
		registries: "ACCOUNT.dkr.ecr.REGION.amazonaws.com and public.ecr.aws",
		identity:   "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run in AWS with an IAM role, or set AWS_ROLE_ARN in a CI job with an OIDC token",
		exchange:   "allow the identity ecr:GetAuthorizationToken (for public.ecr.aws ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken), or renew its credentials",
		repository: "allow the identity to read or push to the repository, e.g. with AmazonEC2ContainerRegistryReadOnly or AmazonEC2ContainerRegistryPowerUser",
	},
	cloud.Azure: {
		registries: "NAME.azurecr.io",
		identity:   "run 'az login', set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run in Azure with a workload identity or managed identity, or set AZURE_TENANT_ID and AZURE_CLIENT_ID in a CI job with an OIDC token",
		exchange:   "check the name of the registry, and assign the AcrPull or AcrPush role on the registry to the identity",
		repository: "assign the AcrPull or AcrPush role on the registry to the identity",
	},
	cloud.GCP: {
		registries: "LOCATION-docker.pkg.dev and gcr.io",
		identity:   "run 'gcloud auth application-default login', set GOOGLE_APPLICATION_CREDENTIALS, or run in Google Cloud with a service account, or set GCP_WORKLOAD_IDENTITY_PROVIDER in a CI job with an OIDC token",
		exchange:   "renew the credentials of the identity",
		repository: "grant the identity roles/artifactregistry.reader or roles/artifactregistry.writer on the repository",
	},
	cloud.GitHub: {
		registries: "ghcr.io, and containers.HOST in jobs of another GitHub server",
		identity:   "run in a GitHub Actions job that sets GITHUB_TOKEN: ${{ github.token }}",
		repository: "set 'packages: write' (or read) in the permissions of the workflow, and give the repository access to the package",
	},
	cloud.GitLab: {
		registries: "the registry in CI_REGISTRY",
		identity:   "run in a GitLab job of a project with a container registry",
		repository: "add the job's project to the job token allowlist of the registry's project",
	},
}

// explainLogin adds a hint to the error of a failed login with a cloud provider. It returns nil for other errors.
func explainLogin(err error) error {
	var failed *cloud.Error
	switch {
	case errors.Is(err, ErrTwoLogins):
		return hint.Errorf("set --creds or --provider", "%w", err)
	case errors.Is(err, ErrInsecureLogin):
		return hint.Errorf("remove --insecure-registry", "%w", err)
	case !errors.As(err, &failed):
		return nil
	}
	p := providers[failed.Provider]
	switch failed.Step {
	case cloud.CheckRegistry:
		return hint.Errorf(fmt.Sprintf("--provider %s is for %s: log in to other registries with 'docker login' or --creds", failed.Provider, p.registries), "%w", err)
	case cloud.Exchange:
		return hint.Errorf(p.exchange, "%w", err)
	default:
		return hint.Errorf(p.identity, "%w", err)
	}
}
