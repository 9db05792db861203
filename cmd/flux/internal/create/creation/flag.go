package creation

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fluxkit/flux/cmd/flux/internal/cli/app"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/command"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/complete"
	"github.com/fluxkit/flux/cmd/flux/internal/cli/syntax"
)

// Flag is a flag of a kind, and the field of the spec that it sets.
type Flag struct {
	name, short, usage string
	// path is the field, "" if Builder.Spec sets it.
	path string
	// replaces lists the fields of a copied spec that the flag replaces.
	replaces []string
	// initial is the default value, which has the type of the flag.
	initial             any
	required, inherited bool
	// choices are the allowed values. kinds and words are for completion: the kinds of referenced
	// objects, and values.
	choices, kinds, words []string
	checks                []func(c *Creation, flag, value string)
	// convert returns the field value if it differs from the flag value.
	convert func(c *Creation) any
}

// Text returns a string flag.
func Text(name, path, usage string) Flag {
	return Flag{name: name, path: path, usage: usage, initial: ""}
}

// List returns a flag for a list of strings.
func List(name, path, usage string) Flag {
	return Flag{name: name, path: path, usage: usage, initial: []string(nil)}
}

// Switch returns a boolean flag.
func Switch(name, path, usage string) Flag {
	return Flag{name: name, path: path, usage: usage, initial: false}
}

// Directory returns a flag for the path to a directory in a source.
func Directory(name, path, initial, usage string) Flag {
	return Flag{name: name, path: path, usage: usage, initial: SourcePath(initial)}
}

// Duration returns a duration flag; 0 means unset.
func Duration(name, path, usage string) Flag {
	return Flag{name: name, path: path, usage: usage, initial: time.Duration(0)}.Checked((*Creation).Positive)
}

// Inherited returns a duration flag that a parent command defines.
func Inherited(name, path string) Flag {
	return Flag{name: name, path: path, initial: time.Duration(0), inherited: true}
}

// Interval returns the flag --interval for kinds with an interval.
func Interval() Flag { return Inherited("interval", "interval") }

// ObjectName returns a flag for the name of an object.
func ObjectName(name, path, usage string, kinds ...string) Flag {
	return Text(name, path, usage).Completes(kinds...).Checked(func(c *Creation, flag, value string) { c.ObjectName(flag, value) })
}

// Choice returns a flag with a fixed set of values.
func Choice(name, path, usage string, values ...string) Flag {
	f := Text(name, path, usage)
	f.choices = values
	return f
}

// OneOf is Choice, but reports invalid values together with the problems of other flags.
func OneOf(name, path, usage string, values ...string) Flag {
	return Text(name, path, usage).Suggests(values...).Checked(func(c *Creation, flag, value string) { c.OneOf(flag, value, values) })
}

// Reference returns a flag for an object reference.
func Reference(name, path, usage string, rules syntax.Rules) Flag {
	return Text(name, path, usage).Completes(rules.Kinds...).As(func(c *Creation) any { return c.Reference(name, rules) })
}

// Dependencies returns the flag --depends-on.
func Dependencies(usage, kind string) Flag {
	return List("depends-on", "dependsOn", usage).Completes(kind).As(func(c *Creation) any { return c.Depends(c.List("depends-on")) })
}

// Short sets the shorthand of the flag.
func (f Flag) Short(letter string) Flag { f.short = letter; return f }

// Default sets the default value.
func (f Flag) Default(value any) Flag { f.initial = value; return f }

// Required makes the flag required.
func (f Flag) Required() Flag { f.required = true; return f }

// Completes sets the kinds of the objects that the flag refers to.
func (f Flag) Completes(kinds ...string) Flag { f.kinds = kinds; return f }

// Suggests sets the values for completion.
func (f Flag) Suggests(words ...string) Flag { f.words = words; return f }

// Replaces sets the fields of the spec that belong together: --from replaces all of them if the flag is set.
func (f Flag) Replaces(fields ...string) Flag { f.replaces = fields; return f }

// Checked adds a check of the value.
func (f Flag) Checked(check func(c *Creation, flag, value string)) Flag {
	f.checks = append(f.checks[:len(f.checks):len(f.checks)], check)
	return f
}

// As sets the function that converts the flag value to the field value.
func (f Flag) As(convert func(*Creation) any) Flag { f.convert = convert; return f }

// fields returns the fields of the spec that the flag sets. A reference is replaced as a whole.
func (f Flag) fields() []string {
	if f.replaces != nil || f.path == "" {
		return f.replaces
	}
	if ref, named := strings.CutSuffix(f.path, "Ref.name"); named {
		return []string{ref + "Ref"}
	}
	return []string{f.path}
}

func (f Flag) add(fs *pflag.FlagSet) {
	if f.inherited {
		return
	}
	switch initial := f.initial.(type) {
	case string:
		if f.choices == nil {
			fs.StringP(f.name, f.short, initial, f.usage)
			return
		}
		fs.VarP(command.Choice{Value: &initial, Allowed: f.choices}, f.name, f.short, f.usage)
	case SourcePath:
		fs.VarP(&initial, f.name, f.short, f.usage)
	case []string:
		fs.StringSliceP(f.name, f.short, initial, f.usage)
	case bool:
		fs.BoolP(f.name, f.short, initial, f.usage)
	case time.Duration:
		fs.DurationP(f.name, f.short, initial, f.usage)
	}
}

// value returns the value of the field.
func (f Flag) value(c *Creation) any {
	if f.convert != nil {
		return f.convert(c)
	}
	switch f.initial.(type) {
	case []string:
		return c.List(f.name)
	case bool:
		return c.Is(f.name)
	case time.Duration:
		return c.Duration(f.name)
	default:
		return c.Text(f.name)
	}
}

// set checks the flag and sets its field.
func (f Flag) set(c *Creation, spec map[string]any) {
	for _, check := range f.checks {
		check(c, f.name, c.Text(f.name))
	}
	if f.path != "" {
		Put(spec, f.path, f.value(c))
	}
}

// AddFlags registers the flags of a builder and their completions.
func (b Builder) AddFlags(a *app.App, cmd *cobra.Command) {
	for _, f := range b.Flags {
		f.add(cmd.Flags())
	}
	if b.OtherFlags != nil {
		b.OtherFlags(cmd.Flags())
	}
	for _, f := range b.Flags {
		if len(f.kinds) > 0 {
			complete.Flag(cmd, f.name, CompleteReferences(a, f.kinds))
		}
		if len(f.words) > 0 {
			complete.Flag(cmd, f.name, cobra.FixedCompletions(f.words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// Build returns the spec, and records invalid flags in c.
func (b Builder) Build(c *Creation) map[string]any {
	for _, f := range b.Flags {
		if _, several := f.initial.([]string); f.required && several {
			c.Require(f.name, strings.Join(c.List(f.name), ","))
		} else if f.required {
			c.Require(f.name, c.Text(f.name))
		}
	}
	spec := map[string]any{}
	if b.Spec != nil {
		b.Spec(c, spec)
	}
	for _, f := range b.Flags {
		f.set(c, spec)
	}
	return spec
}

// FieldsOf returns the fields of the spec that a flag sets.
func (b Builder) FieldsOf(flag string) []string {
	for _, f := range b.Flags {
		if f.name == flag {
			return f.fields()
		}
	}
	return nil
}
