package registry

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/web"
)

// Explain adds a hint to a registry error.
func Explain(ctx context.Context, access Access, err error) error {
	var answered *transport.Error
	var tags *TagsError
	if err == nil || ctx.Err() != nil {
		return err
	}
	if explained := explainLogin(err); explained != nil {
		return explained
	}
	switch {
	case errors.As(err, &tags):
		return &hint.Error{Err: err, Hint: "use a repository with fewer tags, or remove tags that are not needed"}
	case web.Unreachable(err) != nil:
		return hint.Errorf("check the address of the registry and the network connection", "cannot reach the registry: %w", err)
	case web.Lost(err):
		return hint.Errorf("run the command again", "the connection to the registry was lost: %w", err)
	case errors.Is(err, http.ErrSchemeMismatch) && !access.Insecure:
		return &hint.Error{Err: err, Hint: "the registry does not use TLS: set --insecure-registry to allow plain HTTP"}
	case !errors.As(err, &answered):
		return err
	case Rejected(answered) && providers[access.Provider].repository != "":
		return &hint.Error{Err: err, Hint: providers[access.Provider].repository}
	case answered.StatusCode == http.StatusUnauthorized && access.Credentials == "":
		return &hint.Error{Err: err, Hint: "log in with 'docker login', or set credentials with --creds or --provider"}
	case answered.StatusCode == http.StatusUnauthorized:
		return &hint.Error{Err: err, Hint: "the registry rejected the credentials"}
	case answered.StatusCode == http.StatusForbidden:
		return &hint.Error{Err: err, Hint: "check that the credentials have access to the repository"}
	case answered.StatusCode == http.StatusNotFound:
		return &hint.Error{Err: err, Hint: "check the address; 'flux list artifacts' shows the tags of a repository"}
	}
	return err
}

// Rejected reports whether a registry rejected a request because of wrong or missing credentials.
func Rejected(answered *transport.Error) bool {
	return answered.StatusCode == http.StatusUnauthorized || answered.StatusCode == http.StatusForbidden
}
