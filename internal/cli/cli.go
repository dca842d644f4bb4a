// Package cli is the command tree of lately, one file per subcommand.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Main runs the command line of the process and returns its exit code. An interrupt
// ends the command in order; a second one ends the process at once.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
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
	err := execute(ctx, root, inOrder(root, args))
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "lately: interrupted")
		return exitInterrupted
	}
	if failure, ok := errors.AsType[*inputError](err); ok {
		complain(stderr, failure.sentences...)
		return exitInput
	}
	complain(stderr, strings.Split(err.Error(), "\n")...)
	return exitUsage
}

// patience is how long an interrupted command may take to end. One that reads
// a terminal or a silent pipe cannot be woken, and is left behind.
const patience = time.Second

// endsInOrder marks a command that ends by itself when it is interrupted, however
// long that takes.
const endsInOrder = "ends in order"

// inOrder reports whether args name a command that is marked so.
func inOrder(root *cobra.Command, args []string) bool {
	cmd, _, err := root.Find(args)
	return err == nil && cmd.Annotations[endsInOrder] != ""
}

func execute(ctx context.Context, root *cobra.Command, inOrder bool) error {
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if inOrder {
		return <-ended
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return ctx.Err()
	}
}

// complain writes sentences to stderr, which may hold names from anywhere.
func complain(stderr io.Writer, sentences ...string) {
	for _, s := range sentences {
		fmt.Fprintf(stderr, "lately: %s\n", visible(s))
	}
}

// An inputError is what was wrong with the input or the output of a command
// that ran.
type inputError struct{ sentences []string }

func (e *inputError) Error() string { return fmt.Sprint(e.sentences) }

// notWritten makes an inputError of why the output was not written, if it was not.
func notWritten(err error) error {
	if err == nil {
		return nil
	}
	return &inputError{[]string{fmt.Sprintf("the output cannot be written: %v", err)}}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "lately",
		Short: "How many, lately? Exact sliding-window counts, limits, bans and hot keys",
		Long: `Lately answers one question, how many, lately?, for any key, exactly, and acts on the answer.

Exit codes: 0 all is well; 1 some input could not be read or is wrong (what could be read is
reported), or the output not written; 2 the command line or the rules file is wrong, and nothing was done; 130 interrupted.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs, // of which RunE makes a better error
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return fmt.Errorf("%q is no command; did you mean %s?", args[0], strings.Join(near, " or "))
			}
			return fmt.Errorf("%q is no command; allowed is serve, replay, top, validate, version or help", args[0])
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; %s --help says what is allowed", err, cmd.CommandPath())
	})
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(newServe(), newReplay(), newTop(), newValidate(), newVersion(), newMan())
	return root
}
