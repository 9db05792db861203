package command

import "github.com/spf13/pflag"

// AddYes adds --yes, and --silent of Flux 2.9 as an alias.
func AddYes(fs *pflag.FlagSet, yes *bool, usage string) {
	fs.BoolVarP(yes, "yes", "y", false, usage)
	fs.BoolVarP(yes, "silent", "s", false, "alias of --yes")
}
