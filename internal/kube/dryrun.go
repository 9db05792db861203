package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fluxkit/flux/pkg/controllers"
)

// Applier configures an apply.
type Applier struct {
	// Manager is the field manager.
	Manager string
	// Strict rejects unknown fields.
	Strict bool
}

// DryRun returns the result of a forced server-side apply that the server does not store. An object
// without a resourceVersion is new.
func DryRun(ctx context.Context, c *Client, r Resource, o controllers.Object, by Applier) (controllers.Object, error) {
	body, err := applyBody(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", r.Kind, controllers.Name(o), err)
	}
	request := r.locate(c.raw.Patch(types.ApplyPatchType), controllers.Namespace(o), controllers.Name(o)).
		Param("dryRun", "All").Param("force", "true").Param("fieldManager", by.Manager)
	if by.Strict {
		request.Param("fieldValidation", "Strict")
	}
	body, err = answer(ctx, request.Body(body))
	if err != nil {
		return nil, err
	}
	var result controllers.Object
	if err := utiljson.Unmarshal(body, &result); err != nil {
		return nil, fmt.Errorf("parsing the dry run of %s %q: %w", r.Kind, controllers.Name(o), err)
	}
	return result, nil
}
