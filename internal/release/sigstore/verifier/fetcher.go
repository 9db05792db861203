package verifier

import (
	"context"
	"errors"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/fluxkit/flux/internal/web/download"
)

// cacheDays is the number of days for which cached TUF metadata is used without a request, unless
// it expires earlier.
const cacheDays = 1

// fetcher downloads files of a TUF repository.
type fetcher struct {
	ctx    context.Context // the library's interface has no context
	client *download.Client
}

func newFetcher(ctx context.Context, agent string) fetcher {
	return fetcher{ctx, download.New(agent)}
}

// DownloadFile returns a file of at most limit bytes. The context determines the timeout.
func (f fetcher) DownloadFile(address string, limit int64, _ time.Duration) ([]byte, error) {
	data, err := f.client.Read(f.ctx, address, limit)
	var status *download.StatusError
	if errors.As(err, &status) {
		// The library requests newer versions of root.json until one does not exist.
		return nil, &metadata.ErrDownloadHTTP{StatusCode: status.Code, URL: status.URL}
	}
	return data, err
}
