package decrypt

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/hckms"
	"github.com/getsops/sops/v3/hcvault"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/kms"
	"github.com/huaweicloud/huaweicloud-sdk-go-v3/core/auth/provider"
	"sigs.k8s.io/yaml"
)

// keyService returns the name of a key for errors, and a function to decrypt a data key with it.
func (s *service) keyService(r *keyservice.DecryptRequest) (name string, ask func(context.Context) ([]byte, error)) {
	sealed := string(r.GetCiphertext())
	switch k := r.GetKey().GetKeyType().(type) {
	case *keyservice.Key_KmsKey:
		return "AWS KMS key " + k.KmsKey.GetArn(), func(ctx context.Context) ([]byte, error) { return s.aws(ctx, k.KmsKey, sealed) }
	case *keyservice.Key_AzureKeyvaultKey:
		a := k.AzureKeyvaultKey
		return "Azure Key Vault key " + a.GetVaultUrl() + "/" + a.GetName(), func(ctx context.Context) ([]byte, error) { return s.azure(ctx, a, sealed) }
	case *keyservice.Key_GcpKmsKey:
		return "Google Cloud KMS key " + k.GcpKmsKey.GetResourceId(), func(ctx context.Context) ([]byte, error) { return s.gcp(ctx, k.GcpKmsKey, sealed) }
	case *keyservice.Key_VaultKey:
		v := k.VaultKey
		return "Vault key " + v.GetVaultAddress() + "/" + v.GetKeyName(), func(ctx context.Context) ([]byte, error) { return s.vault(ctx, v, sealed) }
	case *keyservice.Key_HckmsKey:
		return "Huawei Cloud KMS key " + k.HckmsKey.GetKeyId(), func(ctx context.Context) ([]byte, error) { return huawei(ctx, k.HckmsKey, sealed) }
	}
	return "key", func(context.Context) ([]byte, error) { return nil, errors.New("unknown key type") }
}

func (s *service) aws(ctx context.Context, k *keyservice.KmsKey, sealed string) ([]byte, error) {
	if err := s.awsAllowed(k); err != nil {
		return nil, err
	}
	key := kms.MasterKey{Arn: k.GetArn(), Role: k.GetRole(), AwsProfile: k.GetAwsProfile(), EncryptedKey: sealed, EncryptionContext: map[string]*string{}}
	for name, value := range k.GetContext() {
		key.EncryptionContext[name] = &value
	}
	if len(s.keys.AWS) > 0 {
		var c struct {
			ID      string `json:"aws_access_key_id"`
			Secret  string `json:"aws_secret_access_key"`
			Session string `json:"aws_session_token"`
		}
		if yaml.Unmarshal(s.keys.AWS, &c) != nil || c.ID == "" || c.Secret == "" {
			return nil, errors.New("malformed sops.aws-kms in the Secret: requires aws_access_key_id and aws_secret_access_key")
		}
		kms.NewCredentialsProvider(credentials.NewStaticCredentialsProvider(c.ID, c.Secret, c.Session)).ApplyToMasterKey(&key)
	}
	return key.DecryptContext(ctx)
}

func (s *service) azure(ctx context.Context, k *keyservice.AzureKeyVaultKey, sealed string) ([]byte, error) {
	if err := s.azureAllowed(k); err != nil {
		return nil, err
	}
	key := azkv.MasterKey{VaultURL: k.GetVaultUrl(), Name: k.GetName(), Version: k.GetVersion(), EncryptedKey: sealed}
	if len(s.keys.Azure) > 0 {
		token, err := s.azureCredential()
		if err != nil {
			return nil, err
		}
		azkv.NewTokenCredential(token).ApplyToMasterKey(&key)
	}
	return key.DecryptContext(ctx)
}

// azureCredential returns the credentials of a service principal, in the format of
// kustomize-controller or the Azure CLI, or of a managed identity.
func (s *service) azureCredential() (azcore.TokenCredential, error) {
	var c struct {
		TenantID      string `json:"tenantId"`
		ClientID      string `json:"clientId"`
		ClientSecret  string `json:"clientSecret"`
		Certificate   string `json:"clientCertificate"`
		Passphrase    string `json:"clientCertificatePassword"`
		SendChain     bool   `json:"clientCertificateSendChain"`
		AuthorityHost string `json:"authorityHost"`
		Tenant        string `json:"tenant"`
		AppID         string `json:"appId"`
		Password      string `json:"password"`
	}
	if yaml.Unmarshal(s.keys.Azure, &c) != nil { // the error may contain the text
		return nil, errors.New("malformed sops.azure-kv in the Secret: not YAML")
	}
	if err := s.azureAuthorityAllowed(c.AuthorityHost); err != nil {
		return nil, err
	}
	var options azcore.ClientOptions
	if c.AuthorityHost != "" {
		options.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: c.AuthorityHost}
	}
	switch {
	case c.TenantID != "" && c.ClientID != "" && c.ClientSecret != "":
		return azidentity.NewClientSecretCredential(c.TenantID, c.ClientID, c.ClientSecret, &azidentity.ClientSecretCredentialOptions{ClientOptions: options})
	case c.Tenant != "" && c.AppID != "" && c.Password != "":
		return azidentity.NewClientSecretCredential(c.Tenant, c.AppID, c.Password, &azidentity.ClientSecretCredentialOptions{ClientOptions: options})
	case c.TenantID != "" && c.ClientID != "" && c.Certificate != "":
		certificates, private, err := azidentity.ParseCertificates([]byte(c.Certificate), []byte(c.Passphrase))
		if err != nil {
			return nil, fmt.Errorf("malformed clientCertificate of sops.azure-kv in the Secret: %w", err)
		}
		return azidentity.NewClientCertificateCredential(c.TenantID, c.ClientID, certificates, private,
			&azidentity.ClientCertificateCredentialOptions{ClientOptions: options, SendCertificateChain: c.SendChain})
	case c.ClientID != "" && !s.configured("AZURE_TOKEN_CREDENTIALS"):
		return nil, errors.New("sops.azure-kv in the Secret specifies a managed identity: set AZURE_TOKEN_CREDENTIALS to use managed identities of this machine")
	case c.ClientID != "":
		return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ClientOptions: options, ID: azidentity.ClientID(c.ClientID)})
	}
	return nil, errors.New("malformed sops.azure-kv in the Secret: requires tenantId, clientId and clientSecret or clientCertificate")
}

func (s *service) gcp(ctx context.Context, k *keyservice.GcpKmsKey, sealed string) ([]byte, error) {
	if err := s.gcpAllowed(k); err != nil {
		return nil, err
	}
	key := gcpkms.MasterKey{ResourceID: k.GetResourceId(), EncryptedKey: sealed}
	if len(s.keys.GCP) > 0 {
		gcpkms.CredentialJSON(s.keys.GCP).ApplyToMasterKey(&key)
	}
	return key.DecryptContext(ctx)
}

func (s *service) vault(ctx context.Context, k *keyservice.VaultKey, sealed string) ([]byte, error) {
	if err := s.vaultAllowed(k); err != nil {
		return nil, err
	}
	key := hcvault.MasterKey{VaultAddress: k.GetVaultAddress(), EnginePath: k.GetEnginePath(), KeyName: k.GetKeyName(), EncryptedKey: sealed}
	if s.keys.Vault != "" {
		hcvault.Token(s.keys.Vault).ApplyToMasterKey(&key)
	}
	return key.DecryptContext(ctx)
}

// huawei decrypts a data key with credentials from the environment or the user's credentials file. The library's
// default credentials would include the credentials of the metadata service.
func huawei(ctx context.Context, k *keyservice.HckmsKey, sealed string) ([]byte, error) {
	key, err := hckms.NewMasterKey(k.GetKeyId())
	if err != nil {
		return nil, err
	}
	own, err := provider.NewCredentialProviderChain([]provider.ICredentialProvider{
		provider.BasicCredentialEnvProvider(), provider.BasicCredentialProfileProvider(),
	}).GetCredentials()
	if err != nil {
		return nil, errors.New("no credentials: set HUAWEICLOUD_SDK_AK and HUAWEICLOUD_SDK_SK")
	}
	hckms.NewCredentials(own).ApplyToMasterKey(key)
	key.EncryptedKey = sealed
	return key.DecryptContext(ctx)
}
