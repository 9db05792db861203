package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/hint"
	"github.com/fluxkit/flux/internal/kube/transport"
	"github.com/fluxkit/flux/internal/web"
	"github.com/fluxkit/flux/pkg/controllers"
)

// pageSize is the maximum number of objects in a page. Most lists fit in one page, and the server
// does not hold an entire huge list in memory.
const pageSize = 10000

// Selection selects objects of a resource.
type Selection struct {
	// Namespace is "" for all namespaces.
	Namespace string
	// Name is "" for all names.
	Name string
	// Labels is a label selector, "" for all.
	Labels string
	// Fields is a field selector in addition to Name, such as "type=Warning".
	Fields string
	// Without lists fields to omit, such as "status.inventory". They are not decoded. A path
	// applies to each element of a list.
	Without []string
	// OnlyMetadata requests objects without spec and status. A server that does not support it
	// sends complete objects.
	OnlyMetadata bool
	// Connected is called when the server has accepted a watch, and when an ended watch is opened again. It may be nil.
	Connected func(bool)
	// Quiet suppresses server warnings, for example about deprecated kinds.
	Quiet bool
	// cached requests the state in the server's cache, which may be seconds old.
	cached bool
}

// onlyMetadata requests objects without spec and status, or complete objects from servers that do not support it.
const onlyMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

func (s Selection) fields() string {
	if s.Name == "" {
		return s.Fields
	}
	return strings.TrimSuffix("metadata.name="+s.Name+","+s.Fields, ",")
}

// List calls each with every selected object while it reads the response, so that a long list requires memory for
// only one object at a time. It returns the resourceVersion of the list. Long responses are compressed, which reduces
// their size to about a fifteenth and is not slower even on a local connection.
func (c *Client) List(ctx context.Context, r Resource, s Selection, each func(controllers.Object) error) (string, error) {
	var read int64
	for next := ""; ; {
		list, err := c.page(ctx, r, s, next, &read, each)
		if later := resumed(err); later != "" && later != next {
			next = later
			continue
		}
		if err != nil {
			return "", err
		}
		if next = list.Continue; next == "" {
			return list.ResourceVersion, nil
		}
	}
}

// Metadata calls each with the metadata of the selected objects, for completion and hints.
func (c *Client) Metadata(ctx context.Context, r Resource, s Selection, each func(controllers.Object)) error {
	s.OnlyMetadata, s.cached, s.Without = true, true, []string{"spec", "status", "data", "metadata.managedFields"}
	_, err := c.List(ctx, r, s, func(o controllers.Object) error {
		each(o)
		return nil
	})
	return err
}

// page reads one page of a list. If the connection is lost, it requests the page again and skips
// the objects that were already passed to each, provided that they have not changed.
func (c *Client) page(ctx context.Context, r Resource, s Selection, next string, read *int64, each func(controllers.Object) error) (metav1.ListMeta, error) {
	before := &prefix{seed: maphash.MakeSeed(), each: each}
	for n := 0; ; n++ {
		list, err := c.attempt(ctx, r, s, next, read, before.visit)
		if err == nil {
			err = before.complete()
		}
		var visit *visitError
		switch {
		case err == nil:
			return list, nil
		case errors.As(err, &visit):
			return list, visit.err
		}
		pause, again := transport.Reconnect(n)
		if !again || !transport.Lost(err) || ctx.Err() != nil {
			return list, err
		}
		if n == 0 {
			c.notify(fmt.Sprintf("retrying after the connection to the API server was lost while listing %s", r.Resource))
		}
		before.next = 0
		if err := web.Sleep(ctx, pause); err != nil {
			return list, err
		}
	}
}

func (c *Client) attempt(ctx context.Context, r Resource, s Selection, next string, read *int64, each func(controllers.Object) error) (metav1.ListMeta, error) {
	body, err := r.both.open(ctx, r, fmt.Sprint(s, next), func(ctx context.Context, r Resource) (io.ReadCloser, error) {
		return transport.Open(ctx, listRequest(c.raw, r, s, next))
	})
	if err != nil {
		return metav1.ListMeta{}, err
	}
	list, err := decodeList(body, read, r, prune(s.Without), each)
	var invalid *jsontext.SyntacticError
	if errors.As(err, &invalid) && invalid.ByteOffset == 0 {
		err = hint.Errorf("check that the server address in the kubeconfig points to a Kubernetes API server", "the response is not JSON")
	}
	if err := errors.Join(err, body.Close()); err != nil {
		return list, fmt.Errorf("reading the list of %s: %w", r.Resource, err)
	}
	return list, nil
}

// listRequest returns the request for a page of a list.
func listRequest(raw rest.Interface, r Resource, s Selection, next string) *rest.Request {
	request := r.locate(raw.Get(), s.Namespace, "").Param("limit", strconv.Itoa(pageSize))
	for name, value := range map[string]string{"labelSelector": s.Labels, "fieldSelector": s.fields(), "continue": next} {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	if s.cached && next == "" {
		request = request.Param("resourceVersion", "0")
	}
	if s.OnlyMetadata {
		request = request.SetHeader("Accept", onlyMetadata)
	}
	if s.Quiet {
		request = request.WarningHandler(rest.NoWarnings{})
	}
	return request
}

// errChanged is returned if the connection was lost and the list has changed since.
var errChanged = errors.New("the connection was lost while listing, and the objects have changed since: try again")

// prefix passes objects to each, except those that were already passed before the connection was
// lost, of which it keeps hashes.
type prefix struct {
	seed maphash.Seed
	each func(controllers.Object) error
	seen []uint64
	next int
}

func (p *prefix) visit(o controllers.Object) error {
	hash := maphash.String(p.seed, key(o)+"@"+versionOf(o))
	if p.next < len(p.seen) {
		if p.seen[p.next] != hash {
			return errChanged
		}
		p.next++
		return nil
	}
	p.seen = append(p.seen, hash)
	p.next++
	if err := p.each(o); err != nil {
		return &visitError{err}
	}
	return nil
}

// complete returns an error if the second response contains fewer objects than the first.
func (p *prefix) complete() error {
	if p.next < len(p.seen) {
		return errChanged
	}
	return nil
}

// resumed returns the token to continue a list whose resourceVersion has expired with the next
// object. The server sends it in the metadata of the error (API concepts, "Retrieving large
// results sets in chunks"). A new list would contain the same objects again.
func resumed(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// decodeList decodes the JSON of a list, and adds its size to read. The metadata may be before or after the items.
func decodeList(from io.Reader, read *int64, r Resource, without pruned, each func(controllers.Object) error) (metav1.ListMeta, error) {
	object := int64(0) // the size of the current object
	var list metav1.ListMeta
	d := newStream(budget.Checked(from, func(part []byte, _ error) error {
		object += int64(len(part))
		*read += int64(len(part))
		switch {
		case object > transport.MaxResponse:
			return budget.TooLarge(r.Resource, "an object in the list", transport.MaxResponse)
		case *read > transport.MaxList:
			return budget.TooLarge(r.Resource, "the list", transport.MaxList)
		}
		return nil
	}))
	apiVersion := r.GroupVersion().String()
	err := d.fields(func(name string) error {
		switch name {
		case "items":
			return d.items(func() error {
				object = 0
				if err := budget.Memory(r.Resource); err != nil {
					return err
				}
				o, err := d.object(without)
				if err != nil {
					return err
				}
				// Items of built-in kinds contain neither apiVersion nor kind.
				o["apiVersion"], o["kind"] = apiVersion, r.Kind
				return each(o)
			})
		case "metadata":
			metadata, err := d.object(nil)
			list.ResourceVersion, _ = metadata["resourceVersion"].(string)
			list.Continue, _ = metadata["continue"].(string)
			return err
		default:
			return d.skip()
		}
	})
	return list, err
}

// Get returns one object.
func (c *Client) Get(ctx context.Context, r Resource, namespace, name string) (controllers.Object, error) {
	body, err := r.both.open(ctx, r, namespace+"/"+name, func(ctx context.Context, r Resource) (io.ReadCloser, error) {
		body, err := transport.Send(ctx, r.locate(c.raw.Get(), namespace, name))
		return io.NopCloser(bytes.NewReader(body)), err
	})
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	return decode(data, r, name)
}

func decode(body []byte, r Resource, name string) (controllers.Object, error) {
	var o controllers.Object
	// The Kubernetes decoder decodes integers as int64.
	if err := utiljson.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", r.Kind, name, err)
	}
	return o, nil
}

// Raw returns the response for a path such as "/version".
func (c *Client) Raw(ctx context.Context, path string) ([]byte, error) {
	return transport.Send(ctx, c.raw.Get().AbsPath(path))
}
