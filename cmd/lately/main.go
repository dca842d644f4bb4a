// Command lately counts how often keys were seen lately, and acts on it.
//
// Exit codes: 0 all is well; 1 some input could not be read or is wrong (what
// could be read is reported); 2 the command line or the rules file is wrong,
// and nothing was done; 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

const (
	exitOK          = 0
	exitInput       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil {
		fmt.Fprintln(stderr, "lately: interrupted")
		return exitInterrupted
	}
	if failure, ok := errors.AsType[*inputError](err); ok {
		for _, sentence := range failure.sentences {
			fmt.Fprintf(stderr, "lately: %s\n", sentence)
		}
		return exitInput
	}
	fmt.Fprintf(stderr, "lately: %v\n", err)
	return exitUsage
}

// An inputError is what was wrong with the input of a command that ran.
type inputError struct{ sentences []string }

func (e *inputError) Error() string { return fmt.Sprint(e.sentences) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "lately",
		Short: "How many, lately? Exact sliding-window counts, limits, bans and hot keys",
		Long: `Lately answers one question, how many, lately?, for any key, exactly, and acts on the answer.

Exit codes: 0 all is well; 1 some input could not be read or is wrong (what could be read is
reported); 2 the command line or the rules file is wrong, and nothing was done; 130 interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newReplay(), newCheck(), newVersion())
	return root
}
