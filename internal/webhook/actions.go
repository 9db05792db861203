package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Audience is whom a token of OpenID Connect is for unless a Receiver says otherwise.
const Audience = "notification-controller"

// The variables by which GitHub and Forgejo tell a job where it gets a token.
const (
	actionsURL   = "ACTIONS_ID_TOKEN_REQUEST_URL"
	actionsToken = "ACTIONS_ID_TOKEN_REQUEST_TOKEN" //nolint:gosec // the name of a variable
)

// mostToken bounds what is read of the answer; a token has a few KiB.
const mostToken = 1 << 20

// ErrNoActions says that this is no job that may have a token.
var ErrNoActions = errors.New(actionsURL + " and " + actionsToken + " are not set: this is no job of GitHub or Forgejo Actions that may have a token")

// ActionsToken asks the runner of GitHub or Forgejo Actions, which env knows, for a token.
func ActionsToken(ctx context.Context, client *http.Client, env func(string) string, audience string) (string, error) {
	address, key := env(actionsURL), env(actionsToken)
	if address == "" || key == "" {
		return "", ErrNoActions
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("reading %s: it is not a URL", actionsURL)
	}
	query := u.Query()
	query.Set("audience", audience)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("preparing to ask for a token: %w", hidden(err))
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking for a token: %w", hidden(err))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, mostToken))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return "", fmt.Errorf("reading the answer with the token: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking for a token: the runner's server answers %s", response.Status)
	}
	var answer struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Value == "" {
		return "", errors.New("asking for a token: there is none in the answer of the runner's server")
	}
	return answer.Value, nil
}
