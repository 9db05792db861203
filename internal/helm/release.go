// Package helm reads Helm's release storage: one Secret per revision, in the namespace of the release.
package helm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxkit/flux/internal/kube"
	"github.com/fluxkit/flux/pkg/controllers"
)

// The release statuses that callers distinguish.
const (
	Deployed    = "deployed"
	Failed      = "failed"
	Uninstalled = "uninstalled"
)

// Release is a stored revision of a release.
type Release struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"`
	Info      struct {
		Status      string `json:"status"`
		Description string `json:"description"`
	} `json:"info"`
	Chart struct {
		Metadata struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"metadata"`
	} `json:"chart"`
	// Config contains the values of the release without the chart's default values.
	Config map[string]any `json:"config"`
	// Manifest contains the applied YAML documents without hooks.
	Manifest string `json:"manifest"`
	// ApplyMethod is "ssa" for server-side apply.
	ApplyMethod string `json:"apply_method"`
}

// History contains the newest and the deployed revision of a release, which differ after a failed upgrade.
type History struct {
	Last, Deployed *Release
}

// sizeMax is the maximum size of a decompressed release. The size of a Secret is at most 1 MiB.
const sizeMax = 128 << 20

// Read returns the history of a release, or nil if there is none.
func Read(ctx context.Context, client *kube.Client, namespace, name string) (*History, error) {
	last, deployed := revision{}, revision{}
	selection := kube.Selection{Namespace: namespace, Labels: "owner=helm,name=" + name, Without: []string{"data"}}
	_, err := client.List(ctx, secrets(), selection, func(o controllers.Object) error {
		version, err := strconv.Atoi(kube.Label(o, "version"))
		if err != nil {
			return nil // not a Helm release
		}
		found := revision{controllers.Name(o), version}
		if version > last.version {
			last = found
		}
		if kube.Label(o, "status") == Deployed && version > deployed.version {
			deployed = found
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the revisions of release %s/%s: %w", namespace, name, err)
	}
	if last.version == 0 {
		return nil, nil
	}
	history := &History{}
	if history.Last, err = last.read(ctx, client, namespace); err != nil {
		return nil, err
	}
	switch deployed {
	case revision{}:
	case last:
		history.Deployed = history.Last
	default:
		history.Deployed, err = deployed.read(ctx, client, namespace)
	}
	return history, err
}

// Current returns the revision that an upgrade starts from.
func (h *History) Current() *Release {
	if h.Deployed != nil {
		return h.Deployed
	}
	return h.Last
}

// revision is a Secret of a release.
type revision struct {
	secret  string
	version int
}

func (r revision) read(ctx context.Context, client *kube.Client, namespace string) (*Release, error) {
	secret, err := client.Get(ctx, secrets(), namespace, r.secret)
	if err != nil {
		return nil, fmt.Errorf("reading revision %d of the release: %w", r.version, err)
	}
	found, err := Of(secret)
	if err != nil {
		return nil, fmt.Errorf("reading the release in Secret %s/%s: %w", namespace, r.secret, err)
	}
	return found, nil
}

// Of decodes the release in a Helm Secret: JSON, which all but old versions of Helm compress, encoded in base64
// twice, by Helm and by the API. Errors do not contain any of its content.
func Of(secret controllers.Object) (*Release, error) {
	text, err := base64.StdEncoding.DecodeString(controllers.Path{"data.release"}.String(secret))
	if err != nil {
		return nil, errors.New("invalid base64")
	}
	packed, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, errors.New("invalid base64 in the content")
	}
	content := io.Reader(bytes.NewReader(packed))
	if bytes.HasPrefix(packed, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(content)
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		content = io.LimitReader(unpacked, sizeMax)
	}
	var found Release
	if err := json.NewDecoder(content).Decode(&found); err != nil {
		return nil, errors.New("invalid JSON")
	}
	return &found, nil
}

func secrets() kube.Resource {
	return kube.ResourceFor(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
}
