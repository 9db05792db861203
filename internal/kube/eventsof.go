package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/fluxkit/flux/pkg/controllers"
)

// EventsOf returns at most limit events about one object, in no particular order.
func (c *Client) EventsOf(ctx context.Context, kind, namespace, name string, limit int) ([]controllers.Object, error) {
	events := Resource{}
	events.Version, events.Resource = "v1", "events"
	body, err := answer(ctx, events.locate(c.raw.Get(), namespace, "").
		Param("fieldSelector", fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s", kind, name)).
		Param("limit", strconv.Itoa(limit)))
	if err != nil {
		return nil, fmt.Errorf("listing the events of %s %s/%s: %w", kind, namespace, name, err)
	}
	var list struct {
		Items []controllers.Object `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("reading the events of %s %s/%s: %w", kind, namespace, name, err)
	}
	return list.Items, nil
}
