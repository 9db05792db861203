// Package bucket fetches the objects of buckets with the S3 API. Only the helper program links it.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/fluxcd/pkg/auth"
	awsauth "github.com/fluxcd/pkg/auth/aws"
	"golang.org/x/sync/errgroup"

	"github.com/fluxkit/flux/internal/budget"
	"github.com/fluxkit/flux/internal/cloud"
	"github.com/fluxkit/flux/internal/cloud/login"
	"github.com/fluxkit/flux/internal/helper"
	"github.com/fluxkit/flux/internal/web"
)

const (
	// ignoreFile is the file that source-controller reads regardless of the prefix.
	ignoreFile = ".sourceignore"
	// defaultRegion is the region for servers without regions.
	defaultRegion = "us-east-1"
	// concurrent is the maximum number of objects that are fetched at the same time.
	concurrent = 8
	// listBytes is the maximum size of a page of the object list: 1,000 objects with the longest names.
	listBytes = 8 << 20
)

// reader reads one bucket.
type reader struct {
	cloud.BucketRequest
	client *s3.Client
	limits *budget.Budget
}

// Fetch writes the objects of a bucket to the directory, unless their revision is known.
func Fetch(ctx context.Context, r cloud.BucketRequest) ([]cloud.BucketObject, error) {
	keys, err := keysOf(ctx, r)
	if err != nil {
		return nil, err
	}
	client, err := clientFor(r)
	if err != nil {
		return nil, err
	}
	b := &reader{BucketRequest: r, limits: budget.New(budget.Default())}
	b.connect(keys, client)
	if r.Region == "" {
		b.Region = b.location(ctx)
		b.connect(keys, client)
	}
	objects, err := b.list(ctx)
	if err == nil && cloud.BucketRevision(objects) != r.Known {
		err = b.download(ctx, objects)
	}
	return objects, brief(err)
}

// amazon reports whether AWS runs the server.
func amazon(r cloud.BucketRequest) bool {
	return !r.Insecure && (strings.HasSuffix(r.Endpoint, ".amazonaws.com") || strings.HasSuffix(r.Endpoint, ".amazonaws.com.cn"))
}

// keysOf returns the credentials of the bucket. The identity's credentials are only sent to AWS.
func keysOf(ctx context.Context, r cloud.BucketRequest) (aws.CredentialsProvider, error) {
	switch {
	case r.AccessKey != "":
		return credentials.NewStaticCredentialsProvider(r.AccessKey, r.SecretKey, ""), nil
	case !r.Identity:
		return aws.AnonymousCredentials{}, nil
	}
	if !amazon(r) {
		return nil, &helper.Error{Step: string(cloud.CheckBucket)}
	}
	options := []auth.Option{auth.WithAllowShellOut()}
	if r.Region != "" {
		options = append(options, auth.WithSTSRegion(r.Region))
	}
	keys, err := awsauth.NewCredentialsProvider(ctx, options...).Retrieve(ctx)
	if err != nil {
		return nil, login.Failed(cloud.Identify, err)
	}
	return credentials.StaticCredentialsProvider{Value: keys}, nil
}

// clientFor returns the HTTP client of a bucket. It limits all responses except objects, which are limited when they
// are read.
func clientFor(r cloud.BucketRequest) (*http.Client, error) {
	server := web.Server{Name: "the bucket", CA: r.CA, Cert: r.Cert, Key: r.Key}
	if r.Proxy != "" {
		var err error
		if server.Proxy, err = url.Parse(r.Proxy); err != nil {
			return nil, errors.New("invalid proxy URL") // the parse error may contain credentials
		}
	}
	objects, err := server.Transport()
	if err != nil {
		return nil, err
	}
	lists := web.Limits{Response: listBytes, TooLarge: budget.TooLarge("listing the bucket", "the response", listBytes)}.Transport(objects)
	return &http.Client{CheckRedirect: web.OtherServers, Transport: web.Wrap(lists, func(r *http.Request, lists http.RoundTripper) (*http.Response, error) {
		if r.URL.Query().Get("x-id") == "GetObject" {
			return objects.RoundTrip(r)
		}
		return lists.RoundTrip(r)
	})}, nil
}

// connect sets the client. Like the client of source-controller, it puts the bucket name into the
// host for AWS, and into the path for other servers.
func (b *reader) connect(keys aws.CredentialsProvider, client *http.Client) {
	scheme, region := "https://", b.Region
	if b.Insecure {
		scheme = "http://"
	}
	if region == "" {
		region = defaultRegion
	}
	b.client = s3.New(s3.Options{
		BaseEndpoint: aws.String(scheme + b.Endpoint), Region: region, UsePathStyle: !amazon(b.BucketRequest), Credentials: keys,
		HTTPClient: client, ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	})
}

// location returns the region of the bucket, or defaultRegion if the server does not return it.
func (b *reader) location(ctx context.Context) string {
	found, err := b.client.GetBucketLocation(ctx, &s3.GetBucketLocationInput{Bucket: &b.Name})
	if err != nil || found.LocationConstraint == "" {
		return defaultRegion
	}
	return string(found.LocationConstraint)
}

// list returns the objects that source-controller would read.
func (b *reader) list(ctx context.Context) ([]cloud.BucketObject, error) {
	var found []cloud.BucketObject
	add := func(prefix string, only bool) error {
		pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, o := range page.Contents {
				key := aws.ToString(o.Key)
				if strings.HasSuffix(key, "/") || only && key != prefix {
					continue // a directory
				}
				if !fs.ValidPath(key) || !filepath.IsLocal(key) {
					return fmt.Errorf("object %.80q: the key is not a valid file path", key)
				}
				if err := b.limits.File(key, aws.ToInt64(o.Size)); err != nil {
					return err
				}
				found = append(found, cloud.BucketObject{Key: key, ETag: strings.Trim(aws.ToString(o.ETag), `"`)})
			}
		}
		return nil
	}
	err := add(b.Prefix, false)
	if err == nil && !slices.ContainsFunc(found, func(o cloud.BucketObject) bool { return o.Key == ignoreFile }) && b.Prefix != "" {
		err = add(ignoreFile, true)
	}
	slices.SortFunc(found, func(a, b cloud.BucketObject) int { return strings.Compare(a.Key, b.Key) })
	return found, err
}

// download writes the objects to files.
func (b *reader) download(ctx context.Context, objects []cloud.BucketObject) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrent)
	for i, o := range objects {
		g.Go(func() (err error) {
			got, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: &o.Key, IfMatch: aws.String(`"` + o.ETag + `"`)})
			if err != nil {
				return fmt.Errorf("object %q: %w", o.Key, err)
			}
			defer func() { err = errors.Join(err, got.Body.Close()) }()
			content, err := budget.ReadAll(got.Body, o.Key, "object", budget.Default().FileBytes)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(b.Directory, strconv.Itoa(i)), content, 0o600)
		})
	}
	return g.Wait()
}

// brief returns the server's error code and message without request IDs.
func brief(err error) error {
	var answered smithy.APIError
	if !errors.As(err, &answered) {
		return err
	}
	text := answered.ErrorCode()
	if message := answered.ErrorMessage(); message != "" {
		text += ": " + message
	}
	return errors.New(text)
}
