// Package access creates the identities of the sandbox's clients: the tokens and
// users that the API server accepts, and the kubeconfig files for them.
package access

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxkit/flux/sandbox/internal/credentials"
	"github.com/fluxkit/flux/sandbox/internal/pki"
	"github.com/fluxkit/flux/sandbox/internal/state"
)

// Admin is the name of the identity for users.
const Admin = "admin"

// Guard is the identity that is allowed to change the policies that isolate an untrusted sandbox. GuardUser is its user.
const (
	Guard     = "guard"
	GuardUser = "sandbox-guard"
)

// ServerUser is the username for the Git server and the registry of an untrusted sandbox.
const ServerUser = "flux"

// identity is a row of the API server's token file.
type identity struct {
	name   string // the component that uses it
	user   string
	groups string
}

// identities maps each component to the user that the RBAC bootstrap policy of the API server defines, so that components
// have the same permissions as in a real cluster. The fake kubelet and the agent create tokens and nodes and write the
// status of all pods, so they are in system:masters like the admin.
var identities = []identity{
	{Admin, "sandbox-admin", "system:masters"},
	{"controller-manager", "system:kube-controller-manager", ""},
	{"scheduler", "system:kube-scheduler", ""},
	{"kwok", "sandbox-kwok", "system:masters"},
	{"kubelet", "sandbox-kubelet", "system:masters"},
	{Guard, GuardUser, "system:masters"},
}

// Certificates lists the certificates of the control plane.
var Certificates = map[string]pki.Usage{
	"apiserver":         {CommonName: "kube-apiserver", Server: true},
	"apiserver-etcd":    {CommonName: "kube-apiserver", Client: true},
	"apiserver-kubelet": {CommonName: "kube-apiserver", Client: true},
	"etcd":              {CommonName: "etcd", Server: true, Client: true},
	"kubelet":           {CommonName: "kubelet", Server: true},
}

// Prepare creates the keys, tokens and kubeconfigs of the sandbox. Existing keys and tokens are kept; the kubeconfigs are
// rewritten with the current addresses.
func Prepare(folder state.Folder, config state.Config) error {
	dir := pki.Dir(folder.Path("pki"))
	if err := dir.Ensure(Certificates); err != nil {
		return err
	}
	if err := dir.EnsureKey("service-account"); err != nil {
		return err
	}
	tokens, err := ensureTokens(folder)
	if err != nil {
		return err
	}
	server := "https://" + config.Addr("apiserver")
	for _, id := range identities {
		path := folder.PartKubeconfig(id.name)
		if id.name == Admin {
			path = folder.Kubeconfig()
		}
		if err := WriteKubeconfig(path, server, dir.CA(), id.user, tokens[id.user], ""); err != nil {
			return err
		}
	}
	if !config.Untrusted {
		return nil
	}
	return prepareServers(folder, config)
}

// prepareServers creates the token for the Git server and the registry. In an isolated sandbox, the supervisor verifies
// it. Otherwise, the servers verify it, and the registry allows anonymous reads, because the controllers have no
// credentials for it.
func prepareServers(folder state.Folder, config state.Config) error {
	token, err := ServerToken(folder)
	if errors.Is(err, os.ErrNotExist) {
		if token, err = pki.Token(); err == nil {
			err = state.WriteFile(folder.PKI(serverToken), []byte(token))
		}
	}
	if err != nil || config.Isolated {
		return err
	}
	git, registry := credentials.In(folder.Path("git")), credentials.In(folder.Path("registry"))
	return errors.Join(git.SetPassword(ServerUser, token, false), registry.SetPassword(ServerUser, token, false), registry.SetPublic())
}

const serverToken = "servers.token"

// ServerToken returns the password of ServerUser.
func ServerToken(folder state.Folder) (string, error) {
	token, err := os.ReadFile(folder.PKI(serverToken))
	if err != nil {
		return "", fmt.Errorf("reading the token of the servers: %w", err)
	}
	return string(token), nil
}

// WriteKubeconfig writes a kubeconfig for server. The certificate authority is embedded, so that the file can be copied.
func WriteKubeconfig(path, server, caFile, user, token, namespace string) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("reading certificate authority: %w", err)
	}
	const cluster = "flux-sandbox"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user, Namespace: namespace}
	config.CurrentContext = cluster
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig: %w", err)
	}
	return state.WriteFile(path, data)
}

// TokenFile returns the path of the API server's token file.
func TokenFile(folder state.Folder) string { return folder.PKI("tokens.csv") }

// ensureTokens returns the token of each user, and creates missing tokens.
func ensureTokens(folder state.Folder) (map[string]string, error) {
	tokens, err := readTokens(TokenFile(folder))
	if err != nil {
		return nil, err
	}
	var rows strings.Builder
	w := csv.NewWriter(&rows)
	for _, id := range identities {
		if tokens[id.user] == "" {
			if tokens[id.user], err = pki.Token(); err != nil {
				return nil, err
			}
		}
		row := []string{tokens[id.user], id.user, id.user}
		if id.groups != "" {
			row = append(row, id.groups)
		}
		if err := w.Write(row); err != nil {
			return nil, fmt.Errorf("encoding tokens: %w", err)
		}
	}
	w.Flush()
	return tokens, state.WriteFile(TokenFile(folder), []byte(rows.String()))
}

func readTokens(path string) (map[string]string, error) {
	tokens := map[string]string{}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return tokens, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	r := csv.NewReader(file)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	for _, row := range rows {
		if len(row) >= 2 {
			tokens[row[1]] = row[0]
		}
	}
	return tokens, nil
}
