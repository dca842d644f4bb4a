// Package cli is the command tree of lately, one file per subcommand.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lately-go/lately/internal/rule/spelling"
)

// Main runs the command line of the process and returns its exit code. An interrupt
// ends the command in order; a second one ends the process at once.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

const (
	exitOK           = 0
	exitInput        = 1
	exitUsage        = 2
	exitProtected    = 3
	exitNotExpressed = 3 // by lately import
	exitRefused      = 3 // the event of lately check
	exitInterrupted  = 130
)

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := Root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	strict(root)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "lately: interrupted")
		return exitInterrupted
	}
	if failure, ok := errors.AsType[*inputError](err); ok {
		complain(stderr, failure.sentences...)
		return cmp.Or(failure.code, exitInput)
	}
	complain(stderr, strings.Split(err.Error(), "\n")...)
	return exitUsage
}

// complain writes sentences, which may contain untrusted names, to stderr.
func complain(stderr io.Writer, sentences ...string) {
	for _, s := range sentences {
		fmt.Fprintf(stderr, "lately: %s\n", visible(s))
	}
}

// An inputError is what is wrong with the input or the output of a command that ran.
type inputError struct {
	sentences []string
	code      int // exit code; 0 means exitInput
}

func (e *inputError) Error() string { return fmt.Sprint(e.sentences) }

// inputErrorOf returns an inputError, or nil if there is no sentence.
func inputErrorOf(sentences ...string) error {
	if len(sentences) == 0 {
		return nil
	}
	return &inputError{sentences: sentences}
}

// notWritten returns an inputError if writing the output has failed.
func notWritten(err error) error {
	if err == nil {
		return nil
	}
	return inputErrorOf(fmt.Sprintf("the output cannot be written: %v", err))
}

// flagsOnly returns an error for a command with arguments, which suggests the command of that name, as for "lately rules reload".
func flagsOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if other, _, err := cmd.Root().Find(args); err == nil && other != cmd.Root() {
		return fmt.Errorf("%s: argument %q: must be flags only; did you mean %s?", cmd.Name(), args[0], other.CommandPath())
	}
	return fmt.Errorf("%s: argument %q: must be flags only", cmd.Name(), args[0])
}

// Root returns the command tree.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "lately",
		Short: "Rate limiter, ban engine and hot-key detector with exact sliding windows",
		Long: `Lately is a rate limiter, ban engine and hot-key detector with exact sliding windows. Test the rules on
yesterday's access log with lately replay, then enforce the same file with lately serve.

Exit codes: 0 success; 1 some input could not be read or is wrong (the rest is reported), or the output
could not be written; 2 the command line or the rules file is wrong, and nothing was done; 130 interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs, // RunE has a better error
		RunE:          helpOf,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newServe(), newFollow(), newReplay(), newSuggest(), newDiff(), newExplain(), newTest(), newTop(), newValidate(), newImport(), newVersion(),
		newCheck(), newStatus(), newRules(), newReload(), newKey(), newBan(), newUnban(), newBans())
	return root
}

// strict makes an unknown command an error of cobra's commands help and completion.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.Args, c.RunE = cobra.ArbitraryArgs, helpOf
		case "help":
			c.RunE = func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				switch {
				case err != nil:
					return err
				case of.HasSubCommands():
					return helpOf(of, rest)
				}
				return of.Help()
			}
		}
	}
}

// helpOf prints the help of a command that has others, or returns an error for one that it does not have.
func helpOf(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand is the error for a command that cmd does not have, with the name that may be meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if near := spelling.Nearest(name, names, 2); near != "" {
		return fmt.Errorf("unknown command %q: did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown command %q: must be one of %s", name, strings.Join(names, ", "))
}
