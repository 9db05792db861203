//go:build !linux

// Package isolation runs sandbox components in a network namespace, which only Linux supports.
package isolation

import (
	"context"
	"errors"
	"syscall"
)

// Command is the argument of "flux-sandbox part" that runs Try.
const Command = "isolated"

var errSystem = errors.New("only Linux has network namespaces")

// Check returns an error, because this system has no network namespaces.
func Check(context.Context, string) error { return errSystem }

// Try returns the error of Check.
func Try() error { return errSystem }

// Attributes returns the attributes unchanged.
func Attributes(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }

// Enter returns the error of Check.
func Enter() error { return errSystem }

// Files has no effect, because only Linux has Landlock.
func Files(Access) error { return nil }

// Memory has no effect.
func Memory(int) error { return nil }
