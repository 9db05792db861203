package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// cloud gets credentials from a credential helper of Docker.
type cloud struct {
	ctx     context.Context //nolint:containedctx // the library's interface takes none
	program string
}

// Get implements authn.Helper.
func (c cloud) Get(server string) (user, secret string, err error) {
	cmd := exec.CommandContext(c.ctx, c.program, "get")
	cmd.Stdin = strings.NewReader(server)
	out, err := cmd.Output()
	if err != nil {
		return "", "", fmt.Errorf("asking %s for credentials of %s: %w", c.program, server, err)
	}
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", "", fmt.Errorf("reading what %s answered: %w", c.program, err)
	}
	return answer.Username, answer.Secret, nil
}
