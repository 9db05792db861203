//go:build !linux

// Package isolation gives the parts of a sandbox a network of their own, which only Linux can.
package isolation

import (
	"context"
	"errors"
	"syscall"
)

// Command is the argument of "flux-sandbox part" that runs Try.
const Command = "isolated"

var errSystem = errors.New("only Linux has network namespaces")

// Check returns an error: this system has no networks for programs.
func Check(context.Context, string) error { return errSystem }

// Try returns the error of Check.
func Try() error { return errSystem }

// Attributes returns the attributes unchanged.
func Attributes(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }

// Enter returns the error of Check.
func Enter() error { return errSystem }

// Files restricts nothing: only Linux has Landlock.
func Files(Access) error { return nil }
