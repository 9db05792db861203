package main

import (
	"os"
	"testing"

	"github.com/fluxkit/flux/internal/testtemp"
)

func TestMain(m *testing.M) { os.Exit(testtemp.M{Tests: m}.Run()) }
