package kube

import (
	"context"
	"fmt"
	"strconv"

	"github.com/fluxkit/flux/pkg/controllers"
)

// onlyMetadata requests objects without spec and status, or complete objects from servers that do
// not support it.
const onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// Metadata calls each with the metadata of the selected objects, for completion and hints. It
// reads only the first page.
func (c *Client) Metadata(ctx context.Context, r Resource, s Selection, each func(controllers.Object)) error {
	request := r.locate(c.raw.Get(), s.Namespace, "").
		SetHeader("Accept", onlyMetadata).
		Param("limit", strconv.Itoa(pageSize)).
		Param("resourceVersion", "0") // a list from the cache of the server is recent enough
	for name, value := range map[string]string{"labelSelector": s.Labels, "fieldSelector": s.fields()} {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	body, err := openStream(ctx, request)
	if err != nil {
		return err
	}
	_, err = decodeList(body, new(int64), r, prune([]string{"spec", "status", "data", "metadata.managedFields"}), func(o controllers.Object) error {
		each(o)
		return nil
	})
	if closed := body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("listing the names of %s: %w", r.Resource, err)
	}
	return nil
}
