package failure_test

import (
	"testing"

	"github.com/fluxkit/flux/pkg/diagnose/failure"
)

func BenchmarkParse(b *testing.B) {
	const message = `failed to checkout and determine revision: unable to list remote for 'http://git:40123/fleet': Get "http://git:40123/fleet/info/refs?service=git-upload-pack": dial tcp 127.0.0.1:40123: connect: connection refused`
	for b.Loop() {
		failure.Parse(message)
	}
}
