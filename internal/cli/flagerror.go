package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lately-go/lately/internal/rule/spelling"
)

// flagError returns err, the error of a flag of cmd, in the form of the other errors, and with the name that
// may be meant.
func flagError(cmd *cobra.Command, err error) error {
	help := "; see " + cmd.CommandPath() + " --help"
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return fmt.Errorf("%s%s", unknownFlag(cmd, e), help)
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s: missing value: must be %s%s", e.GetFlag().Name, valueForm(e.GetFlag()), help)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		name, why := e.GetFlag().Name, e.Unwrap().Error()
		switch e.GetFlag().Value.Type() {
		case "int", "bool", "duration", "stringSlice": // which have errors of package strconv
			why = "must be " + valueForm(e.GetFlag())
		}
		return fmt.Errorf("--%s: %q: %s%s", name, e.GetValue(), why, help)
	}
	return fmt.Errorf("%w%s", err, help)
}

// unknownFlag returns the error for a flag that cmd does not have, with the one that may be meant.
func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) string {
	name := e.GetSpecifiedName()
	if names := e.GetSpecifiedShortnames(); strings.HasPrefix(names, "=") && cmd.Name() == "follow" {
		return fmt.Sprintf("unknown flag -%s: the standard input with a format must come behind two dashes, as in -- -%s", names, names)
	} else if names != "" {
		return fmt.Sprintf("unknown flag -%s: flags have two dashes and a name", names)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := spelling.Nearest(name, names, min(2, len(name)/3)); near != "" {
		return fmt.Sprintf("unknown flag --%s: did you mean --%s?", name, near)
	}
	if c, _, err := cmd.Root().Find([]string{name}); err == nil && c != cmd.Root() {
		return fmt.Sprintf("unknown flag --%s: it is a command, lately %s", name, name)
	}
	names = nil
	for _, other := range cmd.Root().Commands() {
		if other.Flags().Lookup(name) != nil {
			names = append(names, other.Name())
		}
	}
	if len(names) > 0 && !cmd.HasParent() {
		return fmt.Sprintf("unknown flag --%s: must come after the command, as in lately %s --%s", name, names[0], name)
	}
	if len(names) > 0 {
		return fmt.Sprintf("unknown flag --%s: it is a flag of %s", name, strings.Join(names, ", "))
	}
	return fmt.Sprintf("unknown flag --%s", name)
}

// valueForm returns the form of the values of f.
func valueForm(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	case "duration":
		return "a duration such as 10s, 5m or 1h"
	}
	name, _ := pflag.UnquoteUsage(f)
	return "--" + f.Name + " " + strings.ToUpper(name)
}
