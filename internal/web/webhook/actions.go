package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/web"
)

// Audience is the default audience of OIDC tokens for Receivers.
const Audience = "notification-controller"

// The environment variables of GitHub and Forgejo Actions for requesting an OIDC
// token.
const (
	ActionsURL   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	actionsToken = "ACTIONS_ID_TOKEN_REQUEST_TOKEN" // the name of a variable
)

// maxToken is the maximum size of the token response. A token has a few KiB.
const maxToken = 1 << 20

// ErrNoActions is returned outside of jobs that may request a token.
var ErrNoActions = errors.New(ActionsURL + " and " + actionsToken + " are not set: run in a GitHub or Forgejo Actions job with the permission id-token: write")

// ActionsToken requests an OIDC token from the runner of GitHub or Forgejo Actions.
func ActionsToken(ctx context.Context, client *http.Client, env func(string) string, audience string) (string, error) {
	address, key := env(ActionsURL), env(actionsToken)
	if address == "" || key == "" {
		return "", ErrNoActions
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("invalid URL in %s", ActionsURL)
	}
	query := u.Query()
	query.Set("audience", audience)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("requesting an OIDC token: %w", web.WithoutURL(err))
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Accept", "application/json")
	runner := *client
	runner.CheckRedirect = web.SameServer
	response, err := runner.Do(request)
	if err != nil {
		return "", fmt.Errorf("requesting an OIDC token: %w", web.WithoutURL(err))
	}
	text, err := budget.ReadAll(response.Body, "", "it", maxToken)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", fmt.Errorf("reading the response with the OIDC token: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("requesting an OIDC token: unexpected status %s", response.Status)
	}
	var answer struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Value == "" {
		return "", errors.New("requesting an OIDC token: no token in the response")
	}
	return answer.Value, nil
}
