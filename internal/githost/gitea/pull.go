package gitea

import (
	"net/http"

	"github.com/fluxkit/flux/internal/githost"
	"github.com/fluxkit/flux/internal/githost/rest"
)

// OpenPull returns a pull request on Gitea or Forgejo. The account ID of a workflow token is -2.
func OpenPull(h githost.Hosted, number int, client *http.Client, api *rest.API) *rest.Pull {
	c := newClient(h, client)
	return &rest.Pull{API: api, Client: c, Notes: rest.HubNotes(c, h, number)}
}
