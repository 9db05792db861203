package command

import "github.com/spf13/pflag"

// AddYes adds --yes and its alias --silent, the flag of Flux 2.9.
func AddYes(fs *pflag.FlagSet, yes *bool, usage string) {
	fs.BoolVarP(yes, "yes", "y", false, usage)
	fs.BoolVarP(yes, "silent", "s", false, "alias of --yes")
}
