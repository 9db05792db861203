package main

import (
	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{Use: "version", RunE: func(*cobra.Command, []string) error { return a.printf("flux: v%s\n", version) }}
}
