package sources

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/fluxkit/flux/pkg/controllers"
	"github.com/fluxkit/flux/pkg/testrun/policy"
)

// serveInputs serves the inputs of a ResourceSetInputProvider as an external service, and returns the redirection of the
// provider to it. Such inputs require an ID, and the default limit is 100 inputs.
func (s *Server) serveInputs(ctx context.Context, provider controllers.ID, inputs []map[string]any) (policy.Redirect, error) {
	identified := make([]map[string]any, len(inputs))
	for i, input := range inputs {
		identified[i] = map[string]any{"id": strconv.Itoa(i + 1)}
		maps.Copy(identified[i], input)
	}
	content, err := json.Marshal(map[string]any{"inputs": identified})
	if err != nil {
		return policy.Redirect{}, err
	}
	if err := s.listen(ctx); err != nil {
		return policy.Redirect{}, err
	}
	name := "/inputs/" + provider.Namespace + "/" + provider.Name
	s.local.mu.Lock()
	defer s.local.mu.Unlock()
	s.local.files[name] = content
	patch := fmt.Sprintf(`[JSONPatch{op: "replace", path: "/spec", value: {`+
		`"type": dyn("ExternalService"), "insecure": dyn(true), "url": dyn(%q), "filter": dyn({"limit": %d})}}]`,
		"http://"+s.local.server.Address+name, max(len(inputs), 1))
	return policy.Redirect{Group: controllers.OperatorGroup, Resource: "resourcesetinputproviders", When: policy.Is(provider), Patch: patch}, nil
}
