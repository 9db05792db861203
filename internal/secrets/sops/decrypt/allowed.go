package decrypt

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/getsops/sops/v3/hcvault"
	"github.com/getsops/sops/v3/keyservice"

	"github.com/fluxkit/flux/internal/lazy"
)

// A SOPS document specifies its keys, and may be untrusted. Before the SOPS library is called, these functions check
// whether a key in a document may cause a request. Requests are allowed to addresses that the user has configured,
// and to domains of a provider with credentials that the user has configured.

// vaultSegment matches a valid element of a Vault key path. Other elements could reach a part of
// the Vault API other than a transit engine with the user's token.
var vaultSegment = lazy.Regexp(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

// vaultAllowed returns an error unless the user has configured the address of a key.
func (s *service) vaultAllowed(k *keyservice.VaultKey) error {
	if !slices.ContainsFunc(s.vaultAddresses(), func(named string) bool { return sameServer(named, k.GetVaultAddress()) }) {
		return errors.New("a token is only sent to the address in VAULT_ADDR or SOPS_HC_VAULT_ALLOWLIST")
	}
	for _, segment := range append(strings.Split(strings.Trim(k.GetEnginePath(), "/"), "/"), k.GetKeyName()) {
		if !vaultSegment().MatchString(segment) {
			return fmt.Errorf("invalid element %q in the key path", segment)
		}
	}
	return nil
}

// vaultAddresses returns the addresses that the user has configured. The allowlist values "all"
// and "none" add no address.
func (s *service) vaultAddresses() []string {
	list := s.env(hcvault.SopsHCVaultAllowlist)
	switch list {
	case hcvault.AllowlistNoHosts:
		return nil
	case "", hcvault.AllowlistAllHosts:
		return []string{s.env("VAULT_ADDR")}
	}
	return strings.Split(list, ",")
}

// sameServer reports whether an address is on the same server as an allowed address and below its path.
func sameServer(named, address string) bool {
	want, err := url.Parse(strings.TrimSpace(named))
	if err != nil || want.Host == "" {
		return false
	}
	got, err := url.Parse(address)
	if err != nil || got.User != nil || got.RawQuery != "" || got.Fragment != "" || got.Scheme != want.Scheme || !strings.EqualFold(got.Host, want.Host) {
		return false
	}
	below := strings.TrimSuffix(want.Path, "/") + "/"
	return !strings.Contains(got.Path, "..") && strings.HasPrefix(strings.TrimSuffix(got.Path, "/")+"/", below)
}

// awsKey matches the ARN of an AWS KMS key. The region is part of the requested host.
var awsKey = lazy.Regexp(`^arn:aws[a-z-]*:kms:[a-z0-9-]{1,40}:[0-9]+:(key|alias)/[A-Za-z0-9/_-]+$`)

// awsAllowed returns an error unless a key is an AWS KMS key and uses the identity that the user
// has configured. Its credentials come from the user's environment and files.
func (s *service) awsAllowed(k *keyservice.KmsKey) error {
	switch profile, role := k.GetAwsProfile(), k.GetRole(); {
	case !awsKey().MatchString(k.GetArn()):
		return errors.New("not an AWS KMS key ARN")
	case profile != "" && profile != s.env("AWS_PROFILE"):
		return fmt.Errorf("the key requires the AWS profile %q: set AWS_PROFILE to allow it", profile)
	case role != "" && role != s.env("AWS_ROLE_ARN"):
		return fmt.Errorf("the key requires the AWS role %q: set AWS_ROLE_ARN to allow it", role)
	}
	return nil
}

var (
	azureVault     = lazy.Regexp(`^https://[A-Za-z0-9-]{1,63}\.(vault\.azure\.net|vault\.azure\.cn|vault\.usgovcloudapi\.net|managedhsm\.azure\.net|managedhsm\.azure\.cn|managedhsm\.usgovcloudapi\.net)/?$`)
	azureAuthority = lazy.Regexp(`^https://login\.(microsoftonline\.com|microsoftonline\.us|chinacloudapi\.cn|windows\.net|partner\.microsoftonline\.cn)/?$`)
	azureName      = lazy.Regexp(`^[A-Za-z0-9-]*$`)
)

// azureAllowed returns an error unless a key is in an Azure vault. Without credentials in the Secret, the user must
// select the kind of credentials, because the client would otherwise query a metadata service and run programs.
func (s *service) azureAllowed(k *keyservice.AzureKeyVaultKey) error {
	switch {
	case !azureVault().MatchString(k.GetVaultUrl()):
		return errors.New("not an Azure Key Vault domain")
	case !azureName().MatchString(k.GetName()) || !azureName().MatchString(k.GetVersion()):
		return errors.New("malformed key name or version")
	case len(s.keys.Azure) == 0 && s.env("AZURE_TOKEN_CREDENTIALS") == "":
		return errors.New("no credentials: set AZURE_TOKEN_CREDENTIALS, for example to AzureCLICredential")
	}
	return nil
}

// azureAuthorityAllowed returns an error unless the authority host in a Secret, which
// receives the credentials, is an Azure domain or configured by the user.
func (s *service) azureAuthorityAllowed(address string) error {
	if address == "" || azureAuthority().MatchString(address) || strings.TrimSuffix(address, "/") == strings.TrimSuffix(s.env("AZURE_AUTHORITY_HOST"), "/") {
		return nil
	}
	return errors.New("authorityHost of sops.azure-kv is not an Azure domain: set AZURE_AUTHORITY_HOST to allow it")
}

// gcpKey matches the name of a Google Cloud KMS key.
var gcpKey = lazy.Regexp(`^projects/[A-Za-z0-9.:_-]+/locations/[A-Za-z0-9-]+/keyRings/[A-Za-z0-9_-]+/cryptoKeys/[A-Za-z0-9_-]+$`)

// gcpAllowed returns an error unless there are credentials for Google Cloud. Without them, the client
// would query the metadata service.
func (s *service) gcpAllowed(k *keyservice.GcpKmsKey) error {
	switch {
	case !gcpKey().MatchString(k.GetResourceId()):
		return errors.New("not a Google Cloud KMS key name")
	case len(s.keys.GCP) > 0:
		return s.serviceAccountAllowed()
	case s.configured("GOOGLE_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST"), s.gcloudHasCredentials():
		return nil
	}
	return errors.New("no credentials: set GOOGLE_APPLICATION_CREDENTIALS, or GCE_METADATA_HOST to use the metadata service")
}

// gcloudHasCredentials reports whether gcloud has stored the user's credentials in the file that the library reads.
func (s *service) gcloudHasCredentials() bool {
	config := filepath.Join(s.env("HOME"), ".config")
	if runtime.GOOS == "windows" {
		config, _ = os.UserConfigDir() // "": the file does not exist there
	}
	_, err := os.Stat(filepath.Join(config, "gcloud", "application_default_credentials.json"))
	return err == nil
}

// serviceAccountAllowed returns an error unless the credentials in the Secret belong to a Google Cloud service
// account. Other kinds of credentials can specify addresses, files to send to them, and programs to run.
func (s *service) serviceAccountAllowed() error {
	var c struct {
		Type     string `json:"type"`
		TokenURI string `json:"token_uri"`
		Universe string `json:"universe_domain"`
	}
	if json.Unmarshal(s.keys.GCP, &c) != nil { // the error may contain the text
		return errors.New("malformed sops.gcp-kms in the Secret: not JSON")
	}
	if c.Type != "service_account" {
		return fmt.Errorf("unsupported credentials type %q in sops.gcp-kms: must be service_account", c.Type)
	}
	tokens, err := url.Parse(c.TokenURI)
	switch {
	case err != nil:
		return errors.New("malformed sops.gcp-kms in the Secret: token_uri is not a URL")
	case c.Universe != "" && c.Universe != "googleapis.com" && c.Universe != s.env("SOPS_GCP_KMS_UNIVERSE_DOMAIN"):
		return errors.New("universe_domain of sops.gcp-kms is not googleapis.com: set SOPS_GCP_KMS_UNIVERSE_DOMAIN to allow it")
	case c.TokenURI == "" || tokens.Scheme == "https" && slices.Contains([]string{"oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"}, tokens.Host):
		return nil
	}
	if named, err := url.Parse(s.env("SOPS_GCP_KMS_ENDPOINT")); err == nil && named.Host != "" && named.Scheme == tokens.Scheme && named.Host == tokens.Host {
		return nil
	}
	return errors.New("token_uri of sops.gcp-kms is not in a Google domain: set SOPS_GCP_KMS_ENDPOINT to allow it")
}
